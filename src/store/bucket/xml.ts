/**
 * The text of the answers of an object store, which are flat lists of named elements: no parser of XML is needed, and an
 * answer that is none has no elements.
 */
export function elementsOf(xml: string, name: string): readonly string[] {
  return [...xml.matchAll(new RegExp(`<${name}(?: [^>]*)?>([^]*?)</${name}>`, 'g'))].map(
    ([, text = '']) => text,
  );
}

/** The text of the first element of this name. Empty: there is none. */
export function textOf(xml: string, name: string): string {
  return unescaped(elementsOf(xml, name)[0] ?? '');
}

const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function unescaped(text: string): string {
  return text.replace(
    /&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi,
    (whole, hex?: string, decimal?: string, name = '') => {
      if (hex !== undefined) return String.fromCodePoint(parseInt(hex, 16));
      return decimal === undefined ? (NAMED[String(name)] ?? whole) : String.fromCodePoint(Number(decimal));
    },
  );
}

/** The body that makes a file of its parts, in their order. */
export function completionOf(etags: readonly string[]): string {
  const parts = etags.map(
    (etag, n) => `<Part><PartNumber>${n + 1}</PartNumber><ETag>${escaped(etag)}</ETag></Part>`,
  );
  return `<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
