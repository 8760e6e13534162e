/**
 * Answers on the bundled catalogue. A test asks for each and compares. Cursors and parts differ from store to store: what they
 * begin with says their kind.
 */
export const ITEM_EXAMPLES = {
  list: {
    request: '/items?limit=1&fields=price,color&page=3',
    answer: {
      data: [{ id: 'd00003', price: 327, color: 'E' }],
      page: {
        limit: 1,
        hasMore: true,
        nextCursor: 'EQ...',
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
  partitions: {
    request: '/items/partitions?n=2&fields=price',
    answer: {
      partitions: [
        { url: '/items/stream?part=Eg...&fields=price' },
        {
          url: '/items/stream?part=Eg...&fields=price',
        },
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
