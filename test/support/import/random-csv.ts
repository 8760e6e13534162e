import { below, oneOf, type Random } from '../store/random-collection.ts';

const CELLS = [
  ...(
    '1 0 -0 12 -3 0.5 2.50 2147483648 9007199254740993 0.30000000000000004 007 +5 .5 5. 1e5 ' +
    '1e-05 1,5 1.234,56 x toys größe 字 𝄞 \ufffd \ufeff NaN true 2024-12-31 \x00 ' +
    '655b0b800000000100000000'
  ).split(' '),
  ...['', '', ' 5', 'a b', "'", 'x'.repeat(257)],
];
const QUOTED = [
  ...'a a,b a;b "" two\nlines two\r\nlines three\r\r\nlines 5 größe """"'.split(' '),
  ...['', 'say ""x""'],
];
const MISPLACED = ['a"b', '"a"b', '"a" ', ' "a"', '"a""', '"', '"a\n', '""a'];

/** The names of the columns of random tables. The first three become the id, the category and the price. */
export const NAMES = ['id', 'category', 'price', 'a', 'b', 'größe', '0', 'x y'];

/** A random CSV content under a header. `odd`: the share of cells and rows that are unusual. */
export function randomCsv(random: Random, header: readonly string[], rows: number, odd: number): Buffer {
  const end = oneOf(random, ['\n', '\n', '\r\n', '\r']);
  const lineEnd = () =>
    random() < odd ? oneOf(random, ['\n', '\r\n', '\r', '\n\n', '\r\n\r\n', '\n\r']) : end;
  const head = (random() < 0.2 ? '\ufeff' : '') + header.join() + lineEnd();
  let text = '';
  for (let row = 0; row < rows; row++) {
    const cells = header.map((name) => cellOf(random, name, row, odd));
    if (random() < odd / 4) cells.pop();
    if (random() < odd / 4) cells.push('x');
    text += cells.join() + (row + 1 < rows || random() < 0.5 ? lineEnd() : '');
  }
  const bytes = Buffer.from(text);
  for (let n = 0; bytes.length > 0 && n < 3 && random() < odd * 3; n++) {
    const at = below(random, bytes.length);
    bytes[at] = oneOf(random, [0x22, 0x2c, 0x0a, 0x0d, 0x80, 0xff, 0xc3, 0x00, 0x41]);
  }
  return Buffer.concat([Buffer.from(head), bytes]);
}

function cellOf(random: Random, name: string, row: number, odd: number): string {
  if (random() < odd / 4) return oneOf(random, MISPLACED);
  if (random() < 0.2) return `"${oneOf(random, QUOTED)}"`;
  if (random() < odd) return oneOf(random, CELLS);
  switch (name) {
    case 'id':
      return random() < odd ? `k${row}` : String(row + 1);
    case 'price':
      return String(below(random, 100_000) / 100);
    case 'a':
      return String(below(random, 1_000));
    default:
      return oneOf(random, ['x', 'größe', 'some text', '']);
  }
}
