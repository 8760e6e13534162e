import type { Slot } from '../store/turns/slots.ts';
import { POINTS, storedNames, type TableNotation } from './csv-cell.ts';
import type { Machine } from './machine.ts';
import { EVERYTHING, type Selection } from './selection.ts';

/** One of the module's two ways to write rows, with its state and its functions. */
export interface Pass {
  /** The size of its state in bytes. */
  readonly size: number;
  open(state: Slot): void;
  readonly begin: (state: number, at: number, end: number) => void;
  readonly run: (state: number, out: number, limit: number) => number;
  readonly finished: (state: number) => number;
  readonly endHere: (state: number) => number;
  readonly rowsDone: (state: number) => number;
}

/** Rows as JSON, as the elements of an array or as lines: a State, followed by the names of top-level fields, or by a Selection and its lists of paths. */
export function rowPass(machine: Machine, isArray: boolean, selection: Selection = EVERYTHING): Pass {
  const layout = new Layout(machine.wasm.STATE_SIZE.value);
  const commas = isArray ? 1 : 0;
  const open = selection.isFlat ? openNames() : openPaths();
  return {
    size: layout.size,
    open(state) {
      layout.fill(state);
      open(state.address);
    },
    begin: (state, at, end) => machine.wasm.begin(state, at, end),
    run: (state, out, limit) => machine.wasm.run(state, out, limit),
    finished: (state) => machine.wasm.finished(state),
    endHere: (state) => machine.wasm.endHere(state),
    rowsDone: (state) => machine.wasm.rowsDone(state),
  };

  function openNames(): (address: number) => void {
    const names = selection.fields && layout.add(nameList(selection.fields));
    return (address) => machine.wasm.open(address, commas, pointer(address, names));
  }

  function openPaths(): (address: number) => void {
    const selectionAt = layout.reserve(machine.wasm.SELECTION_SIZE.value);
    const fields = selection.fields && layout.add(pathList(selection.fields));
    const policy = addPolicy(layout, selection);
    return (address) => {
      machine.wasm.open(address, commas, 0);
      const lists = [pointer(address, fields), pointer(address, policy.at), policy.hides] as const;
      machine.wasm.select(address, address + selectionAt, ...lists);
    };
  }
}

/** Rows as CSV: a Table, and what belongs to it. */
export function tablePass(
  machine: Machine,
  columns: readonly string[],
  safe: boolean,
  selection: Selection = EVERYTHING,
  notation: TableNotation = POINTS,
): Pass {
  const layout = new Layout(machine.wasm.TABLE_SIZE.value);
  const table = addTable(layout, machine, columns, selection);
  return {
    size: layout.size,
    open(state) {
      layout.fill(state);
      table.open(state, safe, notation);
    },
    begin: (state, at, end) => machine.wasm.tableBegin(state, at, end),
    run: (state, out, limit) => machine.wasm.tableRun(state, out, limit),
    finished: (state) => machine.wasm.tableFinished(state),
    endHere: (state) => machine.wasm.tableEndHere(state),
    rowsDone: (state) => machine.wasm.tableRowsDone(state),
  };
}

/** The state of an encoder of Arrow: a Table, followed by the kinds of its columns and an Arrow. */
export interface ArrowState {
  readonly size: number;
  /** Where the Arrow lies, from the beginning of the state. Its Parts follow it. */
  readonly arrowAt: number;
  open(state: Slot): void;
}

/** See arrow-rows.as.ts. `keepsRest`: fields without a column are kept. `hasRest`: there is a column `_rest`. */
export function arrowState(
  machine: Machine,
  columns: readonly string[],
  kinds: Uint8Array,
  { keepsRest, hasRest }: { readonly keepsRest: boolean; readonly hasRest: boolean },
  selection: Selection,
): ArrowState {
  const layout = new Layout(machine.wasm.TABLE_SIZE.value);
  const table = addTable(layout, machine, columns, selection);
  const kindsAt = layout.add(kinds);
  const arrowAt = layout.reserve(
    machine.wasm.ARROW_SIZE.value + (columns.length + 1) * machine.wasm.PART_SIZE.value,
  );
  return {
    size: layout.size,
    arrowAt,
    open(state) {
      layout.fill(state);
      table.open(state, false, POINTS);
      const { address } = state;
      machine.wasm.arrowOpen(
        address + arrowAt,
        address,
        address + kindsAt,
        Number(keepsRest),
        Number(hasRest),
      );
    },
  };
}

/** Adds to a Table its cells and the names of its columns; for paths or a policy also a Selection, Places and lists. */
function addTable(
  layout: Layout,
  machine: Machine,
  columns: readonly string[],
  selection: Selection,
): { open: (state: Slot, safe: boolean, notation: TableNotation) => void } {
  const names = storedNames(columns, selection.fields !== undefined);
  const cells = layout.reserve(columns.length * machine.wasm.CELL_SIZE.value);
  const entries = names.map(
    (name) => [layout.add(Buffer.from(`${name}\0`)), Buffer.byteLength(name)] as const,
  );
  const select = selection.isFlat ? undefined : addPlaces(layout, names, selection, machine);
  layout.reserve(16); // names are read 16 bytes at a time
  return {
    open(state, safe, { separator, hasDecimalComma }) {
      const { address } = state;
      const view = new DataView(state.bytes().buffer, address, state.capacity);
      for (const [column, [at, length]] of entries.entries()) {
        const cell = cells + column * machine.wasm.CELL_SIZE.value;
        view.setUint32(cell, address + at, true);
        view.setUint32(cell + 4, length, true);
      }
      const comma = hasDecimalComma ? 1 : 0;
      machine.wasm.tableOpen(address, columns.length, safe ? 1 : 0, separator.charCodeAt(0), comma);
      select?.(address, view);
    },
  };
}

function addPlaces(
  layout: Layout,
  names: readonly string[],
  selection: Selection,
  machine: Machine,
): (address: number, view: DataView) => void {
  const selectionAt = layout.reserve(machine.wasm.SELECTION_SIZE.value);
  const places = layout.reserve(names.length * machine.wasm.PLACE_SIZE.value);
  const arePaths = selection.fields !== undefined;
  const paths = arePaths ? names.map((path) => layout.add(pathList([path]))) : [];
  const policy = addPolicy(layout, selection);
  return (address, view) => {
    for (const [column, path] of paths.entries())
      view.setUint32(places + column * machine.wasm.PLACE_SIZE.value, address + path, true);
    const lists = [pointer(address, policy.at), policy.hides] as const;
    machine.wasm.tableSelect(address, address + selectionAt, address + places, ...lists, arePaths ? 1 : 0);
  };
}

function addPolicy(layout: Layout, { policy }: Selection): { at: number | undefined; hides: number } {
  return { at: policy && layout.add(pathList(policy.paths)), hides: policy?.kind === 'hide' ? 1 : 0 };
}

/** The address of what lies at this offset from `address`. 0: there is nothing. */
function pointer(address: number, offset: number | undefined): number {
  return offset === undefined ? 0 : address + offset;
}

/** What follows a state in its slot, by offsets from the beginning of the slot. */
class Layout {
  #size: number;
  readonly #pieces: (readonly [at: number, bytes: Uint8Array])[] = [];

  constructor(size: number) {
    this.#size = size;
  }

  get size(): number {
    return this.#size;
  }

  /** Returns the offset of this many bytes, which begin at a multiple of 8. */
  reserve(bytes: number): number {
    const at = Math.ceil(this.#size / 8) * 8;
    this.#size = at + bytes;
    return at;
  }

  add(bytes: Uint8Array): number {
    const at = this.#size;
    this.#size += bytes.length;
    this.#pieces.push([at, bytes]);
    return at;
  }

  fill(slot: Slot): void {
    for (const [at, bytes] of this.#pieces) slot.bytes().set(bytes, at);
  }
}

/** Encodes names in the form that isAmong in bson.as.ts reads. */
function nameList(names: readonly string[]): Buffer {
  const count = Buffer.alloc(4);
  count.writeUInt32LE(names.length);
  const entries = names.map((name) => {
    const bytes = Buffer.from(name);
    const length = Buffer.alloc(2);
    length.writeUInt16LE(bytes.length);
    return Buffer.concat([length, bytes]);
  });
  return Buffer.concat([count, ...entries]);
}

/** Paths in the form that select.as.ts reads. An empty list, which shows everything there, becomes a path of no field. */
function pathList(paths: readonly string[]): Buffer {
  const inOrder =
    paths.length > 0 ? paths.map((path) => Buffer.from(path)).sort(comparePaths) : [Buffer.of(0)];
  const head = Buffer.alloc(4 + 8 * inOrder.length);
  head.writeUInt32LE(inOrder.length);
  let at = head.length;
  for (const [i, path] of inOrder.entries()) {
    head.writeUInt32LE(at, 4 + 8 * i);
    head.writeUInt32LE(path.length, 8 + 8 * i);
    at += path.length;
  }
  return Buffer.concat([head, ...inOrder]);
}

/** An order in which the paths below a field are neighbours: that of their names one after the other. */
function comparePaths(a: Buffer, b: Buffer): number {
  const nameByName = (path: Buffer) => path.map((byte) => (byte === DOT ? 0 : byte)); // no name contains 0
  return Buffer.compare(nameByName(a), nameByName(b));
}

const DOT = 0x2e;
