// A worker in a hidden frame, for pages that are opened as files: browsers start no worker from a file, and the search is one.
// The theme looks for the name IFrameWorker in the page around it.

if (location.protocol === "file:") {
  const load = (page, address) =>
    new Promise((resolve, reject) => {
      const script = page.createElement("script");
      script.onload = resolve;
      script.onerror = () => reject(new Error(`cannot load ${address}`));
      script.src = address;
      page.head.append(script);
    });

  class IFrameWorker extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      this.started = new Promise((resolve) => {
        this.frame.addEventListener("load", () => resolve(this.start(address)), { once: true });
      });
      document.body.append(this.frame);
    }

    start(address) {
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      // In the order given, as in a worker; the script waits for the promise.
      inside.importScripts = async (...addresses) => {
        for (const each of addresses) await load(inside.document, each);
      };
      return load(inside.document, address);
    }

    postMessage(data) {
      const inside = this.frame.contentWindow;
      this.started.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
}
