/** The schema of checkpoints of a Delta log, as elements of Parquet: a tree in the order of its nodes, each before its children. */
const TEXT = { type: 'BYTE_ARRAY', converted_type: 'UTF8' };
const INT = { type: 'INT32' };
const LONG = { type: 'INT64' };
const BOOLEAN = { type: 'BOOLEAN' };

function node(name, ...children) {
  return [{ name, repetition_type: 'OPTIONAL', num_children: children.length }, ...children.flat()];
}

function leaf(name, type) {
  return [{ ...type, name, repetition_type: 'OPTIONAL' }];
}

function mapOfTexts(name) {
  return [
    {
      name,
      repetition_type: 'OPTIONAL',
      num_children: 1,
      converted_type: 'MAP',
      logical_type: { type: 'MAP' },
    },
    { name: 'key_value', repetition_type: 'REPEATED', num_children: 2 },
    { ...TEXT, name: 'key', repetition_type: 'REQUIRED' },
    ...leaf('value', TEXT),
  ];
}

function listOfTexts(name) {
  return [
    {
      name,
      repetition_type: 'OPTIONAL',
      num_children: 1,
      converted_type: 'LIST',
      logical_type: { type: 'LIST' },
    },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    ...leaf('element', TEXT),
  ];
}

const PROTOCOL = node('protocol', leaf('minReaderVersion', INT), leaf('minWriterVersion', INT));
const META_DATA = node(
  'metaData',
  leaf('id', TEXT),
  leaf('name', TEXT),
  node('format', leaf('provider', TEXT), mapOfTexts('options')),
  leaf('schemaString', TEXT),
  listOfTexts('partitionColumns'),
  leaf('createdTime', LONG),
  mapOfTexts('configuration'),
);
const ADD = node(
  'add',
  leaf('path', TEXT),
  mapOfTexts('partitionValues'),
  leaf('size', LONG),
  leaf('modificationTime', LONG),
  leaf('dataChange', BOOLEAN),
  leaf('stats', TEXT),
);
const REMOVE = node(
  'remove',
  leaf('path', TEXT),
  leaf('deletionTimestamp', LONG),
  leaf('dataChange', BOOLEAN),
);

export const CHECKPOINT = [{ name: 'schema', num_children: 4 }, ...PROTOCOL, ...META_DATA, ...ADD, ...REMOVE];
