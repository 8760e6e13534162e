import { readFileSync } from 'node:fs';
import { asset } from '../asset.ts';
import { reasonOf } from '../base/error-reason.ts';

/** Compiles transcode.wasm once per process. Throws when the file is missing or this Node.js cannot run it. */
function transcodeModule(): WebAssembly.Module {
  try {
    return (compiled ??= new WebAssembly.Module(readFileSync(asset('rows/wasm/transcode.wasm'))));
  } catch (cause) {
    throw new Error(`The WebAssembly module that writes rows cannot be used: ${reasonOf(cause)}`, { cause });
  }
}

let compiled: WebAssembly.Module | undefined;

/** The exports of module.as.ts. Addresses and lengths are bytes in the imported memory. */
export interface TranscodeExports {
  readonly STATE_SIZE: { readonly value: number };
  open(state: number, commas: number, fields: number): void;
  readonly SELECTION_SIZE: { readonly value: number };
  select(state: number, selection: number, fields: number, policy: number, hides: number): void;
  readonly begin: (state: number, at: number, end: number) => void;
  readonly run: (state: number, out: number, limit: number) => number;
  readonly finished: (state: number) => number;
  readonly endHere: (state: number) => number;
  readonly rowsDone: (state: number) => number;
  readonly TABLE_SIZE: { readonly value: number };
  readonly CELL_SIZE: { readonly value: number };
  readonly PLACE_SIZE: { readonly value: number };
  tableOpen(table: number, columns: number, safe: number, separator: number, hasComma: number): void;
  tableSelect(
    table: number,
    selection: number,
    places: number,
    policy: number,
    hides: number,
    arePaths: number,
  ): void;
  tableAt(table: number): number;
  readonly tableBegin: (table: number, at: number, end: number) => void;
  readonly tableRun: (table: number, out: number, limit: number) => number;
  readonly tableFinished: (table: number) => number;
  readonly tableEndHere: (table: number) => number;
  readonly tableRowsDone: (table: number) => number;
  readonly ARROW_SIZE: { readonly value: number };
  readonly PART_SIZE: { readonly value: number };
  notesSize(rows: number, columns: number): number;
  arrowOpen(arrow: number, table: number, kinds: number, keepsRest: number, hasRest: number): void;
  arrowFind(arrow: number, notes: number, most: number, bytes: number): number;
  arrowWrite(arrow: number, out: number, limit: number): number;
  hashBegin(seed: bigint): void;
  hashBlocks(at: number, length: number): void;
  hashEnd(at: number, length: number): bigint;
}

/** The imports of module.as.ts. `out` is where text goes. The functions that write return the number of bytes. */
interface TranscodeHost extends Record<string, unknown> {
  number(value: number, out: number): number;
  decimal(at: number, out: number): number;
  /** Returns the double nearest to the Decimal128 at `at`. */
  double(at: number): number;
  extended(type: number, at: number, end: number): number;
  spilled(out: number, length: number): void;
}

/** Instantiates the module over a memory whose first four pages are the module's own. */
export function instantiate(memory: object, host: TranscodeHost): TranscodeExports {
  const module = transcodeModule();
  const { exports } = new WebAssembly.Instance(module, { env: { memory }, host });
  return exports as unknown as TranscodeExports;
}
