/** The script of the renderer of /docs as browsers load it. */
export function apiReference(): string;
