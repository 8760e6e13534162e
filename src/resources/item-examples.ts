const NOW = [
  '{"checkpoint":{"cursor":"EAjwuvIBEAAAAAAAAAAAAAAAAAAAAAAAFQBR7DcI1feIZNIAAAABAAAAAAAA0rRs1-rh","upToDate":true,"rows":0,"removed":0,"bytes":0,"crc32":"00000000"}}',
  '{"end":{"cursor":"EAjwuvIBEAAAAAAAAAAAAAAAAAAAAAAAFQBR7DcI1feIZNIAAAABAAAAAAAA0rRs1-rh","upToDate":true,"rows":0,"removed":0,"bytes":0,"crc32":"00000000"}}',
];
const SINCE = [
  '{"id":"d00001","price":330}',
  '{"removed":{"id":"d00002"}}',
  '{"end":{"cursor":"EAjwuvIBEAAAAAAAAAAAAAAAAAAAAAAAFQBR7DcI1feIZNIAAAABAAAAAAAA0rZAtuQP","upToDate":true,"rows":1,"removed":1,"bytes":56,"crc32":"2cf95929"}}',
];
const EVENTS = [
  'data: {"id":"d00001","price":330}',
  '',
  'data: {"removed":{"id":"d00002"}}',
  '',
  'event: checkpoint',
  'id: EAjwuvIBEAAAAAAAAAAAAAAAAAAAAAAAFQBR7DcI1feIZNIAAAABAAAAAAAA0rZAtuQP',
  'data: {"checkpoint":{"cursor":"EAjwuvIBEAAAAAAAAAAAAAAAAAAAAAAAFQBR7DcI1feIZNIAAAABAAAAAAAA0rZAtuQP","upToDate":true,"rows":1,"removed":1,"bytes":56,"crc32":"2cf95929"}}',
  '',
];
const FOLLOW = [
  '{"checkpoint":{"cursor":"EAjwuvIBEAAAAAAAAAAAAAAAAAAAAAABFQBR7DcI1feIZNIAAAABAAAAAAAA0rRLss9g","upToDate":false,"rows":0,"removed":0,"bytes":0,"crc32":"00000000"}}',
  '{"id":"d00001","price":326}',
  '{"id":"d00002","price":326}',
  '{"checkpoint":{"cursor":"EAjwuvIBEAAAAAAAAAAAAAAAAAAAAAAAFQBR7DcI1feIZNIAAAABAAAAAAAA0rRs1-rh","upToDate":true,"rows":2,"removed":0,"bytes":56,"crc32":"6e8d21b9"}}',
];

/**
 * Answers about a set of two rows, of which one changes and the other one is removed. Of answers that stay open they have
 * the beginning. A test makes these changes and compares all but the cursors.
 */
const CHANGES = {
  lines: {
    now: { request: '/items/changes', answer: textOf(NOW) },
    since: {
      request:
        '/items/changes?since=EAjwuvIBEAAAAAAAAAAAAAAAAAAAAAAAFQBR7DcI1feIZNIAAAABAAAAAAAA0rRs1-rh&fields=price',
      answer: textOf(SINCE),
    },
  },
  events: {
    since: {
      request:
        '/items/changes?since=EAjwuvIBEAAAAAAAAAAAAAAAAAAAAAAAFQBR7DcI1feIZNIAAAABAAAAAAAA0rRs1-rh&fields=price',
      answer: textOf(EVENTS),
    },
  },
  follow: { follow: { request: '/items/stream?follow=true&fields=price', answer: textOf(FOLLOW) } },
};

/** Answers on the bundled catalogue. A test asks for each and compares. */
export const ITEM_EXAMPLES = {
  list: {
    request: '/items?limit=1&fields=price,color&page=3',
    answer: {
      data: [{ id: 'd00003', price: 327, color: 'E' }],
      page: {
        limit: 1,
        hasMore: true,
        nextCursor: 'DgTwuvIB0JLyoBUAAAACX2lkAAcAAABkMDAwMDMAAFPSb5M',
        page: 3,
      },
    },
  },
  stream: {
    ndjson: {
      request: '/items/stream?fields=price&limit=2&after=d53938',
      answer: '{"id":"d53939","price":2757}\n{"id":"d53940","price":2757}\n',
    },
    json: {
      request: '/items/stream?format=json&fields=price&limit=1',
      answer: [{ id: 'd00001', price: 326 }],
    },
    csv: {
      request: '/items/stream?format=csv&fields=price,color&limit=1',
      answer: 'id,price,color\r\nd00001,326,E\r\n',
    },
  },
  changes: CHANGES,
  partitions: {
    request: '/items/partitions?n=2&fields=price',
    answer: {
      partitions: [
        { url: '/items/stream?part=DwTQkvKgFAAAAAJ0bwAHAAAAZDI2OTcxAABHHUVT&fields=price' },
        { url: '/items/stream?part=DwTQkvKgFgAAAAJmcm9tAAcAAABkMjY5NzEAANtJxd0&fields=price' },
      ],
    },
  },
  get: {
    request: '/items/d00003',
    answer: {
      id: 'd00003',
      name: '0.23 ct Good cut diamond, color E, clarity VS1',
      category: 'Good',
      price: 327,
      carat: 0.23,
      color: 'E',
      clarity: 'VS1',
      depth: 56.9,
      table: 65,
      x: 4.05,
      y: 4.07,
      z: 2.31,
    },
  },
  ids: ['d00001'],
};

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}
