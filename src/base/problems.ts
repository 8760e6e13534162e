interface Problem {
  readonly status: number;
  readonly title: string;
  readonly explanation: string;
  readonly retry?: number;
}

/**
 * The closed list of problems that a client can meet: the HTTP status, a title (RFC 9457), and what an author of clients
 * should do. `retry`: seconds for Retry-After, unless the error knows better. Our own mistake is a TypeError or similar.
 */
export const PROBLEMS = {
  'invalid-parameter': {
    status: 400,
    title: 'Invalid query parameter',
    explanation:
      'A query parameter has a value of the wrong form. The detail states the expected form. The server never rounds, truncates or ignores a value.',
  },
  'unknown-parameter': {
    status: 400,
    title: 'Unknown query parameter',
    explanation:
      'The resource has no query parameter of this name. Names are case-sensitive. The server does not ignore unknown parameters, because a misspelled filter would then filter nothing.',
  },
  'duplicate-parameter': {
    status: 400,
    title: 'Duplicate query parameter',
    explanation: 'A query parameter is given more than once. The server does not guess which value is meant.',
  },
  'conflicting-parameters': {
    status: 400,
    title: 'Conflicting query parameters',
    explanation:
      'The request has query parameters that exclude each other. The detail names them. For example, give at most one of offset, page and cursor, and give min_price and max_price only with a price sort.',
  },
  'not-indexed': {
    status: 400,
    title: 'No index answers this query',
    explanation:
      'A query may combine filters and an order only where an index of the collection has them in that combination, so that no query ever scans or sorts. The detail lists what can be asked, and the index that would allow this query, or why none can. GET /resources has the whole list.',
  },
  'ambiguous-value': {
    status: 400,
    title: 'Value of several types',
    explanation:
      'The text of a filter can stand for values of several types, and there are rows with more than one of them. The detail has the spellings that say which is meant, such as int:42 and str:42.',
  },
  'offset-too-deep': {
    status: 400,
    title: 'Offset too large',
    explanation:
      'offset or page reaches beyond MAX_OFFSET. A page by offset costs more the deeper it is. Pass the nextCursor of any page as cursor instead: every page then costs the same.',
  },
  'invalid-cursor': {
    status: 400,
    title: 'Invalid cursor',
    explanation:
      'The server did not issue this cursor, or the cursor was changed on the way. Use the cursor of a page, a checkpoint, an end or Changes-From unchanged.',
  },
  'cursor-mismatch': {
    status: 400,
    title: 'Cursor of another sort or filter',
    explanation:
      'A cursor is valid only with the collection, sort, filter and range of the request that it came from. Repeat them. The cursor of a snapshot is valid only at its own point in time, and only in a stream. A cursor of changes is bound to collection and filter.',
  },
  'snapshot-unsupported': {
    status: 400,
    title: 'Snapshots not supported',
    explanation:
      'consistency=snapshot and at read all rows as they were at one point in time. Only a MongoDB replica set supports this. The embedded store and a standalone mongod keep only the current state.',
  },
  'changes-unsupported': {
    status: 400,
    title: 'Changes not supported',
    explanation:
      'MongoDB has changes only as a replica set or a sharded cluster, and only of collections, not of views. A standalone mongod becomes a replica set of one member with --replSet.',
  },
  'invalid-url': {
    status: 400,
    title: 'Malformed URL',
    explanation: 'The path of the URL is not percent-encoded UTF-8.',
  },
  'invalid-header': {
    status: 400,
    title: 'Invalid request header',
    explanation:
      'A request header has a value that its RFC does not allow. The detail names the header. The server does not ignore it, because it may be the condition that prevents a harmful write.',
  },
  'malformed-json': {
    status: 400,
    title: 'Malformed JSON',
    explanation:
      'The request body is empty, not UTF-8 or not JSON. For a syntax error, the detail says where it is, in the words of Node.',
  },
  unauthorized: {
    status: 401,
    title: 'API key required',
    explanation:
      'The server requires an API key. Send it as "Authorization: Bearer KEY". Only keys that the operator has configured are valid.',
  },
  forbidden: {
    status: 403,
    title: 'Right missing',
    explanation: 'The API key lacks the right that the detail names. Only the operator can add it.',
  },
  'not-found': {
    status: 404,
    title: 'Not found',
    explanation: 'No resource has this path, or the item, user or export does not exist.',
  },
  'no-edition': {
    status: 404,
    title: 'No editions',
    explanation:
      'The resource has no editions. The detail says how its operator declares them. Until then read /{resource}/stream, and follow /{resource}/changes.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'Method not allowed',
    explanation:
      'The resource exists, but does not support this method. The Allow header lists the methods that it supports.',
  },
  'not-acceptable': {
    status: 406,
    title: 'No acceptable representation',
    explanation:
      'The resource has no representation that Accept or Accept-Encoding allows. The detail lists the available ones.',
  },
  'export-not-complete': {
    status: 409,
    title: 'Export not complete',
    explanation:
      'An export has a file only in the state complete. If it is queued or running, try again later. If it failed, its problem states the reason: create a new export.',
  },
  'export-file-lost': {
    status: 410,
    title: 'Export file lost',
    explanation:
      'The file of this export is missing, shorter than it was, or its bytes changed on the disk. The export is failed now. Discard what you received and create a new export.',
  },
  'snapshot-expired': {
    status: 410,
    title: 'Snapshot expired',
    explanation:
      'MongoDB keeps past states only for some minutes (minSnapshotHistoryWindowInSeconds, 5 minutes by default), and only until its indexes change. Start again with consistency=snapshot, or ask the operator for a longer window.',
  },
  'changes-expired': {
    status: 410,
    title: 'Changes expired',
    explanation:
      'The store no longer has every change since this cursor: the oplog of MongoDB has moved on, or CHANGES_TTL has passed in the embedded store. Start again with an empty copy. The Location header has the URL of the stream to start with.',
  },
  'collection-replaced': {
    status: 410,
    title: 'Collection dropped or replaced',
    explanation:
      'The collection was dropped, renamed or replaced by another one of the same name after this cursor or part was issued. A stream does not continue, because rows of two collections are the whole of neither. Discard the rows received and start again. A page does continue with such a cursor.',
  },
  'precondition-failed': {
    status: 412,
    title: 'Precondition failed',
    explanation:
      'If-Match names an ETag that the resource no longer has, or If-None-Match names one that it has. Nothing was changed. Get the resource, decide again, and send its current ETag.',
  },
  'body-too-large': {
    status: 413,
    title: 'Request body too large',
    explanation: 'The request body is larger than the server accepts. The detail states the limit.',
  },
  'uri-too-long': {
    status: 414,
    title: 'URL too long',
    explanation: 'The URL is longer than the server accepts. The detail states the limit.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'Unsupported media type',
    explanation:
      'This operation does not support the Content-Type or Content-Encoding of the request body. The Accept, Accept-Post, Accept-Patch or Accept-Encoding header of the response lists those that it supports.',
  },
  'range-not-satisfiable': {
    status: 416,
    title: 'Range not satisfiable',
    explanation:
      'Range requests bytes beyond the end of the file. The Content-Range header states the length of the file.',
  },
  'misdirected-request': {
    status: 421,
    title: 'Host not served',
    explanation:
      'The server asks for no API key, and the Host header is neither an IP address nor a name that it knows: localhost, HOST, or one in ALLOWED_HOSTS. Otherwise a page of any site could use the server through the browser of its visitor (DNS rebinding).',
  },
  'invalid-body': {
    status: 422,
    title: 'Invalid request body',
    explanation:
      'The request body is JSON, but not what this operation expects. errors lists every fault: a JSON Pointer to its place, what was expected and what was received.',
  },
  'sort-value-too-long': {
    status: 422,
    title: 'Sort values too long for a cursor',
    explanation:
      'The rows of the page have ids or sort values of many kilobytes, so no cursor of at most 12 KiB can continue after any of them. A larger limit may end the page at another row. Pages by offset and the stream return these rows.',
  },
  'rate-limited': {
    status: 429,
    title: 'Too many requests',
    explanation:
      'The client made more requests than RATE_LIMIT allows. Wait as many seconds as Retry-After states. The RateLimit header states how many requests are left.',
    retry: 1, // the limiter knows the rest of the window
  },
  'too-many-streams': {
    status: 429,
    title: 'Too many open streams',
    explanation:
      'The client has as many open streams as STREAM_LIMIT allows. Finish or close one before you open another.',
    retry: 5, // when a stream will end is not known, so this only sets the pace
  },
  'too-many-exports': {
    status: 429,
    title: 'Too many exports',
    explanation:
      'The client has as many exports as EXPORT_LIMIT allows, including finished ones. DELETE one that is no longer needed, or wait until one expires.',
    retry: 30, // exports end when they end, or are removed, so this only sets the pace
  },
  internal: {
    status: 500,
    title: 'Internal server error',
    explanation:
      'The server failed and has logged the cause. Report the requestId to its operator. A GET can safely be repeated.',
  },
  overloaded: {
    status: 503,
    title: 'Server overloaded',
    explanation:
      'The server cannot serve more requests in good time. Wait as many seconds as Retry-After states.',
    retry: 2, // the guard measures every 100 ms
  },
  'key-server-unavailable': {
    status: 503,
    title: 'Tokens cannot be verified',
    explanation:
      'The server could not fetch the keys that tokens are verified with. The token may be valid. Wait as many seconds as Retry-After states.',
    retry: 5, // as often as the fetch is tried again
  },
  'store-unavailable': {
    status: 503,
    title: 'Store unavailable',
    explanation:
      'The database behind the server does not respond. The server keeps trying by itself. Wait as many seconds as Retry-After states.',
    retry: 5,
  },
  'store-unfit': {
    status: 503,
    title: 'Store cannot be read reliably',
    explanation:
      'The database responds, but a read might skip or repeat rows: the collection is missing or holds other data, an index is missing, partial or multikey, or the server has no permission to read. The log and /readyz say what the operator must repair. The server then continues by itself.',
    retry: 30, // the least time an operator needs to repair a store
  },
  'not-ready': {
    status: 503,
    title: 'Edition not ready',
    explanation:
      'The first edition of the resource is being made. The detail says how far it has come. Wait as many seconds as Retry-After states.',
    retry: 5,
  },
  'insufficient-storage': {
    status: 507,
    title: 'Disk full or not writable',
    explanation:
      'The disk of the store is full, or its directory cannot be written. Nothing from the request was stored.',
  },
} as const satisfies Readonly<Record<string, Problem>>;

export type ProblemCode = keyof typeof PROBLEMS;
