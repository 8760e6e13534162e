/** The key of the explorer page in this tab, or null. */
const key = sessionStorage.getItem('sluice-key');

/** The JSON at a URL, as the owner of the key sees it. Null when the server refuses it. */
async function read(url) {
  const answer = await fetch(url, { headers: key === null ? {} : { authorization: `Bearer ${key}` } });
  return answer.ok ? answer.json() : null;
}

/** Makes a real row of a resource the example of its answers and of its id. */
async function showRow({ paths, servers }, { links, unavailable }) {
  const page = unavailable === undefined ? await read(`${links.page}?limit=1`) : null;
  const [row] = page?.data ?? [];
  if (!row) return;
  // The links begin with the path of the server, which the paths of the document lack.
  const path = links.page.slice(servers[0].url.length - (servers[0].url === '/' ? 1 : 0));
  const one = paths[`${path}/{id}`]?.get;
  setExample(paths[path]?.get, page);
  setExample(one, row);
  const id = one?.parameters?.find(({ name }) => name === 'id');
  if (id) id.example = String(row._id ?? row.id);
}

function setExample(operation, example) {
  const content = operation?.responses?.['200']?.content?.['application/json'];
  if (!content) return;
  delete content.examples;
  content.example = example;
}

/** The document of this server with a row of each resource, for the owner of the key. */
async function readDocument() {
  const document = await read('openapi.json');
  const isLocked = key === null && document?.components?.securitySchemes !== undefined;
  const list = isLocked ? null : await read('resources');
  if (document && list)
    await Promise.allSettled(list.resources.map((resource) => showRow(document, resource)));
  return document;
}

/** Gives buttons that Scalar leaves without a name one, and lets lists that scroll be reached by keyboard. */
function mend() {
  for (const button of document.querySelectorAll('button[class*="copy-button"]:not([aria-label])'))
    button.setAttribute('aria-label', 'Copy');
  for (const list of document.querySelectorAll('ul.endpoints:not([tabindex])')) list.tabIndex = 0;
}

const content = await readDocument();
// Every feature that would send requests to another host is off.
Scalar.createApiReference('#reference', {
  ...(content ? { content } : { url: 'openapi.json' }),
  ...(key !== null && {
    authentication: { preferredSecurityScheme: 'key', securitySchemes: { key: { token: key } } },
  }),
  withDefaultFonts: false,
  telemetry: false,
  defaultOpenAllTags: true,
  hideClientButton: true,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
});
new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
