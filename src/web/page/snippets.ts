/** Programs that read all rows of a view with the clients that the server hands out. Needs no browser. */

interface SnippetRequest {
  /** The URL of the stream with the filters of the view. It has no quotes and no spaces. */
  readonly url: string;
  readonly name: string;
  /** Whether the server wants an API key. The programs then read it from SLUICE_KEY or from a file. */
  readonly withKey: boolean;
  /** That of the server, and so of its clients. */
  readonly version: string;
}

export interface Snippet {
  readonly title: string;
  readonly code: string;
  /** What the program does when the connection is cut, and what it needs. */
  readonly note: string;
}

const CLIENT = 'The first line is the command that installs the client.';

export function snippetsFor({ url, name, withKey, version }: SnippetRequest): readonly Snippet[] {
  const { href: clients, pathname } = new URL('../clients', url); // beside the resource, as the server may be under a path
  const wheel = `${clients}/sluice_client-${version}-py3-none-any.whl`;
  const os = withKey ? 'import os\n' : '';
  const key = withKey ? ", key=os.environ['SLUICE_KEY']" : '';
  const client = (rest: string, imports = '') =>
    `# pip install ${wheel}\n${os}${imports}import sluice_client as sluice\n\n${rest.replace('ROWS', `sluice.rows('${url}'${key})`)}\n`;
  const header = withKey ? ` \\\n  -H "Authorization: Bearer $SLUICE_KEY"` : '';
  return [
    {
      title: 'curl',
      code: `curl -sS --fail --compressed -o ${file(name, 'ndjson')} \\\n  '${url}'${header}\n`,
      note: 'curl fails when the connection is cut: look at its exit code before you take the file for whole.',
    },
    {
      title: 'sluice pull',
      code: `curl -sSO --fail ${clients}/sluice-pull.mjs &&\n  node sluice-pull.mjs '${url}' \\\n  -o ${file(name, 'ndjson')}${withKey ? ' --key-file FILE_WITH_KEY' : ''}\n`,
      note: 'Goes on where the connection was cut, and proves that the file is whole. Needs Node.js alone.',
    },
    {
      title: 'Python',
      code: client('for row in ROWS:\n    print(row)'),
      note: `Goes on where the connection was cut. ${CLIENT}`,
    },
    {
      title: 'pandas',
      code: `${os}import pandas\n\ndata = pandas.read_csv(\n    '${withParameter(url, 'format', 'csv')}'${withKey ? `,\n    storage_options={'Authorization': 'Bearer ' + os.environ['SLUICE_KEY']}` : ''},\n)\nprint(data)\n`,
      note: 'Raises an error when the connection is cut. Needs pandas alone.',
    },
    {
      title: 'polars',
      code: client('data = ROWS.to_polars()\nprint(data)'),
      note: `Arrow brings the types. ${CLIENT} Needs polars and pyarrow, too.`,
    },
    {
      title: 'DuckDB',
      code: client(
        "data = ROWS.to_arrow()\nprint(duckdb.sql('SELECT count(*) FROM data'))",
        'import duckdb\n',
      ),
      note: `${CLIENT} Needs duckdb and pyarrow, too.`,
    },
    {
      title: 'JavaScript',
      code: `// curl -sSO --fail ${clients}/sluice.mjs\nimport { rows } from './sluice.mjs';\n\nfor await (const row of rows('${url}'${withKey ? ', { key: process.env.SLUICE_KEY }' : ''}))\n  console.log(row);\n`,
      note: `Goes on where the connection was cut, and gives only rows that are proved. Node.js runs it; a page of this server imports ${pathname}/sluice.mjs.`,
    },
  ];
}

/** A file name that no shell reads otherwise. */
export function file(name: string, extension: string): string {
  return `${name.replace(/[^A-Za-z0-9._-]/g, '_')}.${extension}`;
}

export function withParameter(url: string, name: string, value: string): string {
  return `${url}${url.includes('?') ? '&' : '?'}${name}=${value}`;
}
