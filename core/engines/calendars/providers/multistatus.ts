import { AnswerRefused } from "../../../platform/exchange.ts";
import { type Element, textIn, XmlReader } from "../xml-reader.ts";

/** One resource of a multistatus (RFC 4918, section 13). */
export interface Resource {
  href: string;
  /** Status of the resource; 200 if only its properties have one. */
  status: number;
  etag: string;
  /** The calendar object, if it was requested and exists. */
  data: string;
}

/** Resources of one response: a person's calendar of a year has some thousand events. */
export const MAX_RESOURCES = 20_000;

/** Parses a multistatus as it arrives; its root has no responses any more. */
export class MultistatusReader extends XmlReader {
  readonly resources: Resource[] = [];

  protected override takes(element: Element): boolean {
    if (element.name !== "response") return false;
    if (this.resources.push(resourceOf(element)) > MAX_RESOURCES)
      throw new AnswerRefused("limit", `The answer tells of more than ${MAX_RESOURCES} resources.`);
    return true;
  }
}

function resourceOf(response: Element): Resource {
  const own = (name: string): string => response.children.find((child) => child.name === name)?.text.trim() ?? "";
  return {
    href: own("href"),
    status: Number(/ (\d{3})/.exec(own("status"))?.[1] ?? 200),
    etag: textIn(response, "getetag"),
    data: textIn(response, "calendar-data"),
  };
}
