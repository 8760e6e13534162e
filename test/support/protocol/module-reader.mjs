/** Reads a case (see readers.ts) with the exports of sluice.mjs, in Node and in browsers, which get this file as it is. */
export async function readByModule({ rows, follow, download, edition, SluiceError }, job) {
  const { reads, url, since, key, retryFor, timeout } = job;
  const yields = [];
  const options = { key, retryFor, timeout };
  try {
    if (reads === 'file') return { yields: [await textOf(download(url, options))], ends: 'whole' };
    if (reads === 'edition') return { yields: [await textOf(rowsOf(edition(url, options)))], ends: 'whole' };
    if (reads === 'rows') {
      for await (const row of rows(url, options)) yields.push(JSON.stringify(row));
      return { yields, ends: 'whole' };
    }
    for await (const { changes, upToDate } of follow(url, { ...options, since: since ?? 'now' })) {
      yields.push(...changes.map(lineOf));
      if (upToDate) break;
    }
    return { yields, ends: 'current' };
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    const { name, message, status = null } = error;
    return name === 'Interrupted'
      ? { yields, ends: 'interrupted', says: message }
      : { yields, ends: 'refused', status, says: message };
  }
}

async function textOf(pieces) {
  const decoder = new TextDecoder();
  let text = '';
  for await (const piece of pieces) text += decoder.decode(piece, { stream: true });
  return text;
}

async function* rowsOf(found) {
  for await (const { bytes } of found.chunks()) yield bytes;
}

/** The line that a change came as. */
function lineOf({ id, row, resource }) {
  const own = row === null ? { removed: { id } } : row;
  if (resource === undefined) return JSON.stringify(own);
  return JSON.stringify(row === null ? { resource, ...own } : { resource, row });
}
