/** Opens the pages of the identity provider without a browser: their scripts run with the few parts of a document that they use. */
import { compileFunction } from 'node:vm'

/** What a wallet in the browser answers to (EIP-1193). */
export interface BrowserWallet {
  request(request: { readonly method: string; readonly params?: readonly unknown[] }): Promise<unknown>
}

class PageElement {
  textContent = ''
  disabled: boolean
  readonly #listeners: (() => unknown)[] = []

  constructor(tag: string) {
    this.disabled = / disabled[ >]/.test(tag)
  }

  addEventListener(event: string, listener: () => unknown): void {
    if (event !== 'click') throw new Error(`a person clicks; ${event} is not supported`)
    this.#listeners.push(listener)
  }

  click(): void {
    if (!this.disabled) for (const listener of this.#listeners) listener()
  }
}

export class Page {
  readonly url: URL
  readonly #html: string
  readonly #elements = new Map<string, PageElement>()

  constructor(url: URL, html: string) {
    this.url = url
    this.#html = html
  }

  /** Null if the page has no such element, as in a document. */
  getElementById(id: string): PageElement | null {
    const tag = new RegExp(`<\\w+ id="${id}"[^>]*>`).exec(this.#html)?.[0]
    if (tag === undefined) return null
    const element = this.#elements.get(id) ?? new PageElement(tag)
    this.#elements.set(id, element)
    return element
  }

  text(id: string): string {
    return this.getElementById(id)?.textContent ?? ''
  }

  click(id: string): void {
    const element = this.getElementById(id)
    if (element === null) throw new Error(`the page has no ${id}`)
    element.click()
  }
}

const MOST_REDIRECTIONS = 5

export class Browser {
  /** What a page has copied. */
  clipboard = ''
  readonly #origin: string
  readonly #wallet: BrowserWallet | undefined
  readonly #cookies = new Map<string, string>()
  readonly #stored = new Map<string, string>()
  readonly #opened: Page[] = []

  constructor(origin: string, wallet?: BrowserWallet) {
    this.#origin = origin
    this.#wallet = wallet
  }

  /** The page that is shown now. */
  get page(): Page {
    const page = this.#opened.at(-1)
    if (page === undefined) throw new Error('no page is open')
    return page
  }

  async #send(url: URL, init: RequestInit = {}): Promise<Response> {
    if (url.origin !== this.#origin)
      throw new Error(`the pages connect to ${this.#origin} only, not ${url.origin}`)
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { ...init, headers: { ...init.headers, cookie }, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=;]+)=([^;]*)/.exec(line) ?? []
      if (name !== undefined && value !== undefined) this.#cookies.set(name, value)
    }
    return response
  }

  async open(address: string): Promise<Page> {
    let url = new URL(address, this.#origin)
    for (let times = 0; times < MOST_REDIRECTIONS; times++) {
      const response = await this.#send(url, { headers: { accept: 'text/html' } })
      const location = response.headers.get('location')
      if (location === null) return this.#show(url, response)
      url = new URL(location, url)
    }
    throw new Error(`${address} redirects more than ${MOST_REDIRECTIONS} times`)
  }

  async #show(url: URL, response: Response): Promise<Page> {
    const html = await response.text()
    const page = new Page(url, html)
    this.#opened.push(page)
    const [, nonce, script = ''] = /<script nonce="([\w-]+)">([\s\S]*)<\/script>/.exec(html) ?? []
    const policy = response.headers.get('content-security-policy') ?? ''
    if (nonce === undefined || !policy.includes(`script-src 'nonce-${nonce}'`))
      throw new Error(`the policy of ${url.pathname} does not allow its script: ${html.slice(0, 200)}`)
    const scope = this.#scope(page)
    compileFunction(script, Object.keys(scope))(...Object.values(scope))
    return page
  }

  async #copy(text: string): Promise<void> {
    this.clipboard = text
  }

  #scope(page: Page): Record<string, unknown> {
    const { origin, pathname, search } = page.url
    const stored = this.#stored
    return {
      document: page,
      window: { ethereum: this.#wallet },
      location: { origin, pathname, search, assign: (to: string) => void this.open(to) },
      history: { replaceState() {} },
      sessionStorage: {
        getItem: (name: string) => stored.get(name) ?? null,
        setItem: (name: string, value: string) => void stored.set(name, value),
        removeItem: (name: string) => void stored.delete(name),
      },
      navigator: { clipboard: { writeText: (text: string) => this.#copy(text) } },
      fetch: (to: string, init?: RequestInit) => this.#send(new URL(to, page.url), init),
    }
  }
}
