/** A JSON Schema of rows, as far as /openapi.json writes them. */
export interface RowSchema {
  readonly 'x-resource'?: unknown;
  readonly type?: unknown;
  readonly format?: unknown;
  readonly properties?: Readonly<Record<string, RowSchema>>;
  readonly required?: readonly string[];
  readonly items?: RowSchema;
  readonly anyOf?: readonly RowSchema[];
}

const INDENT = '  ';

/** Types of TypeScript for the rows of these resources, as the text of a module. `from`: where they come from. */
export function typesOf(schemas: ReadonlyMap<string, RowSchema>, from: string): string {
  const names = namesOf([...schemas.keys()]);
  const declarations = [...schemas].map(([resource, schema]) =>
    [
      `/** A row of /${resource}. Any field but the key may be missing: see docs/api.md of sluice. */`,
      `export interface ${names.get(resource) ?? ''} ${membersOf(schema, '')}`,
    ].join('\n'),
  );
  const head = `// Made by sluice types ${from}\n// Run it again when the rows are others. With --check FILE it says whether they are.\n`;
  return `${head}\n${declarations.join('\n\n')}\n`;
}

/** The names of types by those of resources: `order-lines` has OrderLines. Each comes once. */
function namesOf(resources: readonly string[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const used = new Set<string>();
  for (const resource of resources) {
    const words = resource.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
    const plain = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
    const name = /^\d/.test(plain) ? `Row${plain}` : plain;
    let unique = name;
    for (let n = 2; used.has(unique); n++) unique = `${name}${n}`;
    used.add(unique);
    names.set(resource, unique);
  }
  return names;
}

function membersOf({ properties = {}, required = [] }: RowSchema, indent: string): string {
  const inner = indent + INDENT;
  const lines = Object.entries(properties).map(([name, schema]) => {
    const isAlways = required.includes(name);
    return `${commentOf(schema, inner)}${inner}${memberName(name)}${isAlways ? '' : '?'}: ${typeOf(schema, inner)};\n`;
  });
  return lines.length === 0 ? '{}' : `{\n${lines.join('')}${indent}}`;
}

/** What TypeScript's type does not say: how a text or a number is to be read. */
function commentOf({ format }: RowSchema, indent: string): string {
  return format === 'date-time' || format === 'uuid' || format === 'decimal'
    ? `${indent}/** ${format} */\n`
    : '';
}

function memberName(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}

function typeOf(schema: RowSchema, indent: string): string {
  const { type, anyOf } = schema;
  if (anyOf) return union(anyOf.map((one) => typeOf(one, indent)));
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  return union(types.map((one) => typeOfOne(one, schema, indent)));
}

function typeOfOne(type: unknown, schema: RowSchema, indent: string): string {
  if (type === 'array') {
    const element = typeOf(schema.items ?? {}, indent);
    return element.includes(' | ') ? `(${element})[]` : `${element}[]`;
  }
  if (type === 'object') return schema.properties ? membersOf(schema, indent) : 'Record<string, unknown>';
  if (type === 'integer') return 'number';
  const isPlain = type === 'string' || type === 'number' || type === 'boolean' || type === 'null';
  return isPlain ? type : 'unknown';
}

function union(types: readonly string[]): string {
  const all = [...new Set(types)];
  return all.includes('unknown') ? 'unknown' : all.join(' | ');
}
