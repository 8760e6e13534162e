import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unknownSettings } from '../../src/settings/unknown-settings.ts';
import { sluice } from '../support/process/commands.ts';
import { temporaryFolder } from '../support/directory.ts';

/** Names that look like a setting, and the one that each is meant for. */
const MEANT: Readonly<Record<string, string>> = {
  HTTP_PORT: 'PORT',
  SLUICE_PORT: 'PORT',
  PROT: 'PORT',
  BIND_HOST: 'HOST',
  MOGNODB_URI: 'MONGODB_URI',
  REDIS_URI: 'REDIS_URL',
  LOGLEVEL: 'LOG_LEVEL',
  API_KEYS: 'API_KEYS_FILE',
  MAX_MEMORY_MB: 'MAX_MEMORY',
  EXPOSED: 'EXPOSE',
  HTTP_ENGIN: 'HTTP_ENGINE',
  SLUICE_HTTP_ENGINE: 'HTTP_ENGINE',
};

/** Variables that have nothing to do with sluice, of shells, desktops, systemd, containers, clouds and other programs. */
const USUAL = `PATH HOME HOSTNAME PWD OLDPWD SHELL SHLVL USER LOGNAME LANG LC_ALL TERM TZ TMPDIR MAIL DISPLAY HOSTTYPE
  XDG_DATA_DIRS XDG_CONFIG_DIRS XDG_CACHE_HOME SSH_AUTH_SOCK DBUS_SESSION_BUS_ADDRESS NODE_ENV NODE_OPTIONS NODE_PATH
  NODE_EXTRA_CA_CERTS NODE_UNIQUE_ID NODE_CHANNEL_FD NPM_CONFIG_LOGLEVEL npm_config_loglevel npm_package_name HTTP_PROXY HTTPS_PROXY
  NO_PROXY KUBERNETES_PORT_443_TCP_ADDR KUBERNETES_SERVICE_PORT_HTTPS SLUICE_SERVICE_HOST SLUICE_SERVICE_PORT
  SLUICE_PORT_3000_TCP_PROTO POD_NAME NODE_NAME HOST_IP HOST_UID DOCKER_HOST AWS_REGION CI GITHUB_TOKEN
  POSTGRES_DB PGPORT MYSQL_PORT REDIS_HOST REDIS_PORT MONGO_INITDB_ROOT_USERNAME MONGODB_USERNAME DATABASE_URL JWT_SECRET
  API_KEY API_URL APP_ENV APP_URL DEBUG LOG_DIR LOG_FILE RUST_LOG LISTEN_FDS JOURNAL_STREAM STATE_DIRECTORY MAX_CONNECTIONS`;

test('a variable that looks like a setting is named with the nearest one, and no usual variable is', () => {
  for (const [name, meant] of Object.entries(MEANT))
    assert.deepEqual(unknownSettings({ [name]: 'x' }), [
      `${name} is no setting, and has no effect. Did you mean ${meant}?`,
    ]);
  const usual = USUAL.split(/\s+/).map((name) => [name, 'x'] as const);
  assert.deepEqual(unknownSettings(Object.fromEntries(usual)), []);
  assert.deepEqual(unknownSettings({ SLUICE_PORT: 'tcp://10.0.0.1:3000', HTTP_PORT: '' }), []);
  assert.deepEqual(
    unknownSettings({ PORT: '1', HTTP_PORT: '2' }),
    [],
    'PORT is set: the other is of another program',
  );
  assert.match(
    unknownSettings({ DATABASE_URL: 'mongodb://u:p@h/d' })[0] ?? '',
    /^DATABASE_URL .* MONGODB_URI\?$/,
  );
  assert.match(
    unknownSettings({ SLUICE_SPEED: '9' })[0] ?? '',
    /^SLUICE_SPEED .* --help lists the settings\.$/,
  );
});

test('a start warns of such variables, and so does an import', async (t) => {
  const given = {
    TEST_MONGODB_URI: '',
    LOG_LEVEL: 'warn',
    LOG_FORMAT: 'json',
    KUBERNETES_PORT: 'tcp://10.0.0.1:443',
    HTTP_PORT: '1',
  };
  const expected = ['HTTP_PORT is no setting, and has no effect. Did you mean PORT?'];
  const warned = (log: string) =>
    log.split('\n').flatMap((line) => /"msg":"([^"]*no setting[^"]*)"/.exec(line)?.slice(1) ?? []);
  const started = await sluice(['serve'], { ...given, HOST: '192.0.2.1' });
  assert.equal(started.code, 1, 'no machine has this address');
  assert.deepEqual(warned(started.stdout), expected);
  const args = ['import', '--generate', '1'];
  const imported = await sluice(args, { ...given, DATA_DIR: await temporaryFolder(t) });
  assert.deepEqual(warned(imported.said), expected);
});
