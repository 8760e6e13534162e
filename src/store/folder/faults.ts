import { codeOf } from '../../base/error-reason.ts';
import { AppError, storeUnavailable } from '../../base/errors.ts';

/** Translates errors of files in a folder to AppErrors. `what`: what the files are, in the plural. */
export class FolderFaults {
  readonly #what: string;

  constructor(what: string) {
    this.#what = what;
  }

  /** Returns a handler that takes a missing file for `missing`, and throws for other errors. */
  unlessMissing<T>(missing: T): (error: unknown) => T {
    return (error) => {
      if (codeOf(error) === 'ENOENT') return missing;
      throw this.of(error);
    };
  }

  readonly fail = (error: unknown): never => {
    throw this.of(error);
  };

  of(error: unknown): unknown {
    switch (String(codeOf(error))) {
      case 'ENOSPC':
      case 'EDQUOT':
      case 'EFBIG':
        return new AppError('insufficient-storage', `The disk of the ${this.#what} is full.`, {
          cause: error,
        });
      case 'EROFS':
      case 'EACCES':
      case 'EPERM':
      case 'ENOTDIR':
      case 'EEXIST': // the directory is a file
        return new AppError(
          'insufficient-storage',
          `The directory of ${this.#what} cannot be written (${String(codeOf(error))}).`,
          { cause: error },
        );
      case 'EIO':
      case 'EMFILE':
      case 'ENFILE':
        return storeUnavailable(error);
      default:
        return error;
    }
  }
}
