// AssemblyScript, compiled by build.mjs to transcode.wasm. It is not TypeScript, so tsc, eslint and prettier ignore it.
//
// What the module exports: three ways to write rows (as JSON, CSV and Arrow), and a hash. wasm.ts declares it for TypeScript.
export { STATE_SIZE, begin, endHere, finished, open, rowsDone, run, select } from "./transcode.as";
export { SELECTION_SIZE } from "./select.as";
export { CELL_SIZE, TABLE_SIZE, tableAt, tableBegin, tableEndHere, tableFinished, tableOpen, tableRowsDone, tableSelect } from "./table.as";
export { tableRun } from "./csv.as";
export { PART_SIZE, arrowWrite } from "./arrow.as";
export { ARROW_SIZE, arrowFind, arrowOpen, notesSize } from "./arrow-rows.as";
export { PLACE_SIZE } from "./csv-path.as";
export { hashBegin, hashBlocks, hashEnd } from "./hash.as";
