import { mediaTypeNegotiator } from '../http/negotiate.ts';
import { parseQuery } from '../http/query.ts';
import { json } from '../http/reply.ts';
import type { Route } from '../http/router.ts';
import { fingerprint } from '../serialize/fingerprint.ts';
import { createDocument, type DocumentOptions } from './document.ts';
import { jsonAnswer } from './operation.ts';

/** GET /openapi.json: the document of these routes and its own, made once. */
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
      return json(200, text, { etag, 'cache-control': 'no-cache' });
    },
  };
  const text = JSON.stringify(createDocument([...routes, own], options));
  const etag = `"${fingerprint(Buffer.from(text))}"`;
  return [own];
}
