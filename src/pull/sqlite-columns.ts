/** Whether a field can have a column. SQLite compares names in JSON with their escapes in some versions only. */
export function canBeColumn(name: string): boolean {
  return name !== '' && JSON.stringify(name) === `"${name}"`;
}

/** The value under a field's name, and, with dots in it, under the names of its path, which may lead to an array. */
export function columnValue(name: string): string {
  const names = name.split('.');
  const arrays = names.slice(1).map((_, n) => {
    const path = pathOf(names.slice(0, n + 1));
    return `CASE json_type(row, ${path}) WHEN 'array' THEN json_extract(row, ${path}) END`;
  });
  const values = [[name], ...(names.length > 1 ? [names] : [])].map(
    (path) => `json_extract(row, ${pathOf(path)})`,
  );
  const all = [...values, ...arrays];
  return all.length === 1 ? all.join('') : `coalesce(${all.join(', ')})`;
}

export function quotedName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function quotedText(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

function pathOf(names: readonly string[]): string {
  return quotedText(`$${names.map((name) => `."${name}"`).join('')}`);
}
