import { type ErrorCode, errors, type InputError } from "../../schemas/errors.ts";

/** Details of a failure besides its code. The client may see everything here. */
interface FailDetails {
  detail?: string;
  errors?: InputError[];
  /** Seconds after which a retry makes sense. */
  retryAfter?: number;
  /** The scopes that the token lacks, one of which is enough (RFC 6750), separated by spaces. */
  scope?: string;
  /** The challenge for a client without access, instead of that for a bearer token (RFC 9110, section 11.6.1). */
  challenge?: string;
  /** Further members of the problem document, for example the current version. */
  more?: Record<string, unknown>;
}

/** A failure of the error table. Every other error reaches clients as `internal_error`. */
export class Fail extends Error {
  override readonly name = "Fail";
  readonly code: ErrorCode;
  readonly details: FailDetails;

  constructor(code: ErrorCode, details: FailDetails = {}, cause?: unknown) {
    super(`${code}: ${details.detail ?? errors[code][1]}`, cause === undefined ? undefined : { cause });
    this.code = code;
    this.details = details;
  }

  get status(): number {
    return errors[this.code][0];
  }

  /** The sentence for people: the detail, else that of the code. */
  get sentence(): string {
    return this.details.detail ?? errors[this.code][1];
  }

  /** True if a retry of the same request can't succeed, as a job assumes; a limit passes. */
  get permanent(): boolean {
    return this.status < 500 && this.status !== 429;
  }
}

/** `invalid_request` for one input. */
export function invalid(path: string, message: string, cause?: unknown): Fail {
  return new Fail("invalid_request", { errors: [{ path, message }] }, cause);
}

/** The failure of another server as `service_unavailable`; one that has a code stays as it is. */
export function unavailable(error: unknown, detail: string): Fail {
  return error instanceof Fail ? error : new Fail("service_unavailable", { retryAfter: 5, detail }, error);
}

/** The JSON pointer to a member of the input (RFC 6901). */
export function pointerTo(...names: string[]): string {
  return names.map((name) => `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** For `catch`: the value instead of a failure with this code. Every other error is thrown again. */
export function insteadOf<T>(code: ErrorCode, value: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof Fail && error.code === code) return value;
    throw error;
  };
}
