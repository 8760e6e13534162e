/** Where the parts of the server write what its operator should know. `details` are further fields of the entry. */
export interface Log {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}
