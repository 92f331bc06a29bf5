/** Tells the page around an embedded one how tall it is; a height is nothing that anybody must not know. */
export function tellHeight(content: HTMLElement): void {
  if (parent === window) return;
  let told = 0;
  new ResizeObserver(() => {
    const height = Math.ceil(content.getBoundingClientRect().height);
    if (height === told) return;
    told = height;
    parent.postMessage({ type: "svc-scheduling-size", height }, "*");
  }).observe(content);
}
