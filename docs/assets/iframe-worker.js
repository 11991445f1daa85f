// Browsers start no worker for a page that was opened from the disk. The search runs in a hidden frame there.
"use strict"
if (location.protocol === "file:") {
  class IFrameWorker extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.srcdoc = `<!doctype html><script src="${new URL(url, location.href)}" defer></script>`
      this.frame.addEventListener("load", () => {
        // The script calls postMessage to answer this page, not to talk to its own window.
        this.frame.contentWindow.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
        this.ready = true
        this.waiting.splice(0).forEach(data => this.postMessage(data))
      })
      document.documentElement.append(this.frame)
    }
    postMessage(data) {
      if (this.ready) {
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }))
      } else {
        this.waiting.push(data)
      }
    }
  }
  window.IFrameWorker = IFrameWorker
  window.Worker = IFrameWorker
}
