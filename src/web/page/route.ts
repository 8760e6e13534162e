/** The address behind `#`: which part of the page is shown, of which resource, in which view. */
import { decoded } from '../../decoded.ts';
import { readView, viewQuery, WHOLE, type View } from './view.ts';
import type { Resource } from './resource.ts';
import { urlOf } from './api.ts';

export type Part = 'home' | 'data' | 'proof';

export interface Place {
  readonly part: Part;
  /** The name of the resource. Empty: none is named. */
  readonly name: string;
  /** The resource of this name. */
  readonly resource: Resource | undefined;
  /** All rows where there is no such resource. */
  readonly view: View;
}

/** Reads `#/`, `#/orders?status=paid`, `#proof/orders?status=paid` or `#proof`. */
export function readPlace(hash: string, resources: readonly Resource[]): Place {
  const [path, query] = splitOnce(hash.replace(/^#/, ''), '?');
  const [first, encoded] = splitOnce(path, '/');
  const name = decoded(encoded) ?? encoded; // a user may have mistyped it
  const resource = resources.find((one) => one.name === name);
  const view = resource ? readView(resource, new URLSearchParams(query)) : WHOLE;
  return { part: first === 'proof' ? first : name === '' ? 'home' : 'data', name, resource, view };
}

/** The address of a view. */
export function placeOf(part: 'data' | 'proof', resource: Resource, view: View): string {
  const path = `#${part === 'data' ? '' : part}/${encodeURIComponent(resource.name)}`;
  return urlOf(path, viewQuery(resource, view));
}

function splitOnce(text: string, by: string): [string, string] {
  const at = text.indexOf(by);
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}
