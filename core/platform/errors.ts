import { type ErrorCode, errors, type InputError } from "../../schemas/errors.ts";

/** What a failure may tell besides its code. Everything here may reach the client. */
export interface FailDetails {
  detail?: string;
  errors?: InputError[];
  /** Seconds after which a retry makes sense. */
  retryAfter?: number;
  /** Scopes of which the token needs one (RFC 6750), separated by spaces. */
  scope?: string;
  /** Further members of the problem document, for example the current version. */
  more?: Record<string, unknown>;
}

/** A failure that the error table knows: the only kind that leaves the service with its name. */
export class Fail extends Error {
  override readonly name = "Fail";
  readonly code: ErrorCode;
  readonly details: FailDetails;

  constructor(code: ErrorCode, details: FailDetails = {}, cause?: unknown) {
    super(`${code}: ${details.detail ?? errors[code][1]}`, cause === undefined ? undefined : { cause });
    this.code = code;
    this.details = details;
  }

  /** HTTP status of the code. */
  get status(): number {
    return errors[this.code][0];
  }

  /** The sentence that people read: the detail, else that of the code. */
  get sentence(): string {
    return this.details.detail ?? errors[this.code][1];
  }

  /** True where doing the same again can't help. */
  get permanent(): boolean {
    return this.status < 500 && this.status !== 429;
  }
}

/** `invalid_request` at one input. */
export function invalid(path: string, message: string, cause?: unknown): Fail {
  return new Fail("invalid_request", { errors: [{ path, message }] }, cause);
}
