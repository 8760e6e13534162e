/** The formats of text in which files are imported and pulled. A format's name is also the extension of its files. */
export const TEXT_FORMATS = ['ndjson', 'json', 'csv'] as const;
export type TextFormat = (typeof TEXT_FORMATS)[number];

/** Further extensions of files. */
const EXTENSIONS: ReadonlyMap<string, TextFormat> = new Map([['jsonl', 'ndjson']]);

/** The format that a file's name indicates. null when it indicates none. */
export function formatOfName(file: string): TextFormat | null {
  const extension = /\.([a-z]+)(?:\.(?:gz|br|zst))?$/i.exec(file)?.[1]?.toLowerCase() ?? '';
  return EXTENSIONS.get(extension) ?? TEXT_FORMATS.find((format) => format === extension) ?? null;
}
