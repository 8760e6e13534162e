import { mediaTypeNegotiator } from '../http/negotiate.ts';
import { parseQuery } from '../http/query.ts';
import { json } from '../http/reply.ts';
import type { Route } from '../http/router.ts';
import { fingerprint } from '../serialize/fingerprint.ts';
import { createDocument, type DocumentOptions } from './document.ts';
import { jsonAnswer } from './operation.ts';

/** GET /openapi.json: the document of these routes and its own, made when it is first asked for. */
export function documentRoutes(routes: readonly Route[], options: DocumentOptions): readonly Route[] {
  const acceptable = mediaTypeNegotiator(['application/json']);
  const own: Route = {
    method: 'GET',
    path: '/openapi.json',
    doc: {
      id: 'getOpenApi',
      tag: 'Server',
      open: true,
      summary: 'This document',
      headers: ['If-None-Match'],
      answers: {
        200: jsonAnswer('OpenAPI 3.1', { type: 'object', description: 'an OpenAPI document' }, [
          'ETag',
          'Cache-Control',
        ]),
        304: { description: 'It is the one that If-None-Match names', headers: ['ETag'] },
      },
      problems: ['invalid-header', 'precondition-failed'],
    },
    handler: (request) => {
      acceptable(request);
      parseQuery(request.query, []);
      made ??= make();
      return json(200, made.text, { etag: made.etag, 'cache-control': 'no-cache' });
    },
  };
  let made: { readonly text: string; readonly etag: string } | null = null;
  const make = () => {
    const text = JSON.stringify(createDocument([...routes, own], options));
    return { text, etag: `"${fingerprint(Buffer.from(text))}"` };
  };
  return [own];
}
