/** Commands that read the newest edition of a resource. Needs no browser. */
import { file, type Snippet } from './snippets.ts';

/** What of a head the page needs. */
export interface EditionHead {
  readonly edition: string;
  readonly resource: string;
  readonly at: string;
  readonly rows: number;
  readonly bytes: number;
  readonly formats: readonly string[];
  /** Where its files are: a URL, or a reference that is relative to the resource. */
  readonly files: string;
  readonly index: readonly { readonly level: number }[];
}

interface EditionSnippetRequest {
  /** The URL of the newest head. It has no quotes and no spaces. */
  readonly url: string;
  readonly head: EditionHead;
  /** Whether the server wants an API key. The commands then read it from SLUICE_KEY or from a file. */
  readonly withKey: boolean;
}

/** What undoes the coding of chunks. */
const DECODERS: Readonly<Record<string, string>> = { 'ndjson.gz': ' | gunzip', ndjson: '' };

export function editionSnippets({ url, head, withKey }: EditionSnippetRequest): readonly Snippet[] {
  const { resource, formats } = head;
  const { href: clients } = new URL('../clients', url); // beside the resource, as the server may be under a path
  const key = withKey ? ' --key-file FILE_WITH_KEY' : '';
  const pull = (to: string) =>
    `curl -sSO --fail ${clients}/sluice-pull.mjs &&\n  node sluice-pull.mjs '${url}' \\\n  ${to}${key}\n`;
  return [
    {
      title: 'sluice pull',
      code: pull(`-o ${file(resource, 'ndjson')}`),
      note: 'Proves the file by the name of the edition. Run again, it fetches only the chunks that differ. Needs Node.js alone.',
    },
    {
      title: 'mirror',
      code: pull(`--mirror ${file(resource, 'edition')}`),
      note: 'Keeps a folder that any web server can serve in turn. Run again, it fetches only the files that differ.',
    },
    ...byCurl(url, head, withKey),
    ...(formats.includes('parquet') ? [ofTable(resource)] : []),
  ];
}

/** Joins the chunks. An edition of more than 65,000 chunks has lists of lists, which one line cannot read. */
function byCurl(url: string, { resource, formats, files, index }: EditionHead, withKey: boolean): Snippet[] {
  const format = formats.find((one) => one in DECODERS);
  if (format === undefined || index.some(({ level }) => level > 0)) return [];
  const folder = new URL(files, url).href;
  const isOwn = folder.startsWith(`${new URL(url).origin}/`);
  const header = withKey ? ` -H "Authorization: Bearer $SLUICE_KEY"` : '';
  const ofFile = isOwn ? header : ''; // the key is for the server alone
  const each = (list: string, end: string) =>
    ` | jq -r '${list}[].name' |\n  sed 's|.*|${folder}&${end}|' | xargs -r -n 1 curl -sS --fail${ofFile}`;
  const chunks = `${each('.index', '.index.json')}${each('.chunks', `.${format}`)}${DECODERS[format] ?? ''}`;
  return [
    {
      title: 'curl',
      code: `curl -sS --fail${header} '${url}'${chunks} > ${file(resource, 'ndjson')}\n`,
      note: 'Joins the chunks, and proves nothing: sha256sum of each is its name. Needs curl and jq.',
    },
  ];
}

function ofTable(resource: string): Snippet {
  return {
    title: 'DuckDB',
    code: `INSTALL delta;\nLOAD delta;\nSELECT count(*) FROM delta_scan('TABLE');\n`,
    note: `TABLE is the folder editions/${resource} where FILES of the server has it, such as s3://BUCKET/PREFIX/editions/${resource}. Each edition is a version of this Delta table, which polars and Spark read, too.`,
  };
}
