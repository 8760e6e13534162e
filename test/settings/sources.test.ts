import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfig } from '../../src/settings/config.ts';
import { masked } from '../../src/settings/masked.ts';
import { readSources } from '../../src/settings/sources.ts';
import { configTable } from '../../src/process/config-command.ts';
import { temporaryFolder } from '../support/directory.ts';

const PASSWORD = 'topSecret9';
const URI = `mongodb://ann:${PASSWORD}@db.example/shop?tlsCertificateKeyFilePassword=${PASSWORD}&w=1`;

test('settings come from the environment, a file of settings, and files of secrets, in this order', async (t) => {
  const folder = await temporaryFolder(t);
  const SETTINGS_FILE = join(folder, 'settings');
  const MONGODB_URI_FILE = join(folder, 'uri');
  writeFileSync(MONGODB_URI_FILE, `${URI}\nmore\n`);
  writeFileSync(
    SETTINGS_FILE,
    `# of one server\nPORT=1\n LOG_LEVEL = "warn"\nMAX_LIMIT=\nHOST='::1'\nMONGODB_URI_FILE=${MONGODB_URI_FILE}\n`,
  );
  const environment = { SETTINGS_FILE, PORT: '2', LOG_LEVEL: '' };
  const config = readConfig(environment);
  assert.deepEqual(
    [config.PORT, config.LOG_LEVEL, config.MAX_LIMIT, config.HOST, config.MONGODB_URI],
    [2, 'warn', 1000, '::1', URI],
  );
  const table = configTable([], environment);
  const row = (name: string) => new RegExp(`^${name} +(.*?) +(\\S+|file \\S+)$`, 'm').exec(table)?.slice(1);
  assert.deepEqual(row('PORT'), ['2', 'environment']);
  assert.deepEqual(row('LOG_LEVEL'), ['warn', `file ${SETTINGS_FILE}`]);
  assert.deepEqual(row('MAX_LIMIT'), ['1000', 'default']);
  assert.equal(row('MONGODB_URI')?.[1], `file ${MONGODB_URI_FILE}`);
  assert.equal(row('REDIS_URL')?.[0], '-');
  assert.ok(!table.includes(PASSWORD), table);
});

test('faults of files name the line or the setting, and show no value', async (t) => {
  const folder = await temporaryFolder(t);
  const SETTINGS_FILE = join(folder, 'settings');
  writeFileSync(SETTINGS_FILE, `PORT=1\nPORT=2\n${PASSWORD}\nHTTP_PORT=${PASSWORD}\n`);
  const empty = join(folder, 'empty');
  writeFileSync(empty, '');
  const faults = (environment: NodeJS.ProcessEnv) => readSources(environment).faults.join('\n');
  assert.equal(
    faults({ SETTINGS_FILE }),
    'SETTINGS_FILE, line 2: PORT is given twice\n' +
      'SETTINGS_FILE, line 3 must be NAME=value, or begin with #\n' +
      'SETTINGS_FILE, line 4: HTTP_PORT is no setting of such a file',
  );
  assert.match(faults({ SETTINGS_FILE: folder }), /^SETTINGS_FILE cannot be read: /);
  assert.match(faults({ REDIS_URL_FILE: join(folder, 'none') }), /^REDIS_URL_FILE cannot be read: /);
  assert.match(faults({ REDIS_URL_FILE: empty }), /first line is empty/);
  assert.equal(
    faults({ REDIS_URL_FILE: empty, REDIS_URL: 'redis://a' }),
    'REDIS_URL and REDIS_URL_FILE exclude each other',
  );
});

test('what is masked is secret, and the rest can be read', () => {
  assert.equal(
    masked('MONGODB_URI', URI),
    'mongodb://ann:***@db.example/shop?tlsCertificateKeyFilePassword=***&w=1',
  );
  assert.equal(masked('REDIS_URL', `rediss://:${PASSWORD}@x@redis:6379/0`), 'rediss://:***@redis:6379/0');
  assert.equal(masked('MONGODB_URI', 'mongodb://db.example:27017/a'), 'mongodb://db.example:27017/a');
  for (const name of ['S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY', 'S3_SESSION_TOKEN'])
    assert.equal(masked(name, PASSWORD), '***');
  assert.equal(masked('S3_SESSION_TOKEN_FILE', '/run/token'), '/run/token');
});
