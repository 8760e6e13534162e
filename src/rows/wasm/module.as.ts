// AssemblyScript, compiled by build.mjs to transcode.wasm. It is not TypeScript, so tsc, eslint and prettier ignore it.
//
// What the module exports: two ways to write rows (as JSON, as CSV), and a hash. wasm.ts declares it for TypeScript.
export { STATE_SIZE, begin, endHere, finished, open, rowsDone, run, select } from "./transcode.as";
export { SELECTION_SIZE } from "./select.as";
export { CELL_SIZE, TABLE_SIZE, tableBegin, tableEndHere, tableFinished, tableOpen, tableRowsDone, tableRun, tableSelect } from "./csv.as";
export { PLACE_SIZE } from "./csv-path.as";
export { hashBegin, hashBlocks, hashEnd } from "./hash.as";
