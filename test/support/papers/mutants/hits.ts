import ts from 'typescript';

/** A statement of a source file. `number` counts those of all files. */
export interface Place {
  readonly file: string;
  readonly start: number;
  readonly end: number;
  readonly number: number;
}

/** Where a program keeps which statements it has run, by their numbers (see hits.mjs). */
const HITS = '(globalThis.__hits ??= [])';

/**
 * A file's text in which each statement in a block, and each arrow function without one, notes that it has run. `first`: the
 * number of its first statement.
 */
export function noting(file: string, text: string, first: number): { noted: string; places: Place[] } {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const places: Place[] = [];
  const inserts: (readonly [at: number, text: string])[] = [];
  const numbered = (node: ts.Node): string => {
    const number = first + places.length;
    places.push({ file, start: node.getStart(source), end: node.end, number });
    return `${HITS}[${number}] = 1`;
  };
  const visit = (node: ts.Node): void => {
    if (ts.isArrowFunction(node) && !ts.isBlock(node.body)) {
      inserts.push([node.body.getStart(source), `(${numbered(node.body)}, `], [node.body.end, ')']);
    } else if (ts.isStatement(node) && !ts.isBlock(node) && hasRoom(node.parent)) {
      inserts.push([node.getStart(source), `;${numbered(node)};`]);
    }
    ts.forEachChild(node, visit);
  };
  ts.forEachChild(source, (node) => {
    ts.forEachChild(node, visit);
  });
  // Inserts of the same place stay in their order: an outer function begins before, and ends behind, an inner one.
  const sorted = inserts.map((insert, order) => ({ insert, order }));
  sorted.sort(
    (a, b) => a.insert[0] - b.insert[0] || closing(a.insert) - closing(b.insert) || a.order - b.order,
  );
  let [noted, done] = ['', 0];
  for (const {
    insert: [at, added],
  } of sorted) {
    noted += text.slice(done, at) + added;
    done = at;
  }
  return { noted: noted + text.slice(done), places };
}

/** Whether a node holds a list of statements. */
function hasRoom(node: ts.Node): boolean {
  return ts.isBlock(node) || ts.isCaseOrDefaultClause(node);
}

/** Ends come before the beginnings of what follows. */
function closing([, added]: readonly [number, string]): number {
  return added === ')' ? 0 : 1;
}

/** The number of the innermost statement at a place. undefined: it is outside of functions, and runs when it is loaded. */
export function placeOf(places: readonly Place[], file: string, at: number): number | undefined {
  const around = places.filter((place) => place.file === file && place.start <= at && at < place.end);
  return around.sort((a, b) => a.end - a.start - (b.end - b.start))[0]?.number;
}
