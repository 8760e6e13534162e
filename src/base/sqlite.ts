/** The SQLite library. From Node 22 on, `node:sqlite` has the same API and can take its place. */
export { backup, DatabaseSync } from '@photostructure/sqlite';
