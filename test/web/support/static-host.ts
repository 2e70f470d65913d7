/** A host of static files, as an operator may run one for the page: files, `config.json`, and the document for every screen. */
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, resolve } from 'node:path'
import { policyOf } from '../../../api/page/serve.ts'
import { pageDir } from '../../../stack/page.ts'

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.html': 'text/html; charset=utf-8',
}

interface StaticConfig {
  readonly api_url: string
  readonly issuer_url: string | null
  readonly client_id: string
  readonly rpc_urls: readonly string[]
}

/** The policy of the api names its own host for the feed, here that of `api_url`. */
function policy({ api_url, issuer_url, rpc_urls }: StaticConfig): string {
  const api = new URL(api_url)
  return policyOf({ issuerUrl: issuer_url, rpcUrls: [api.origin, ...rpc_urls] }, api.host)
}

export async function serveStatically(
  config: StaticConfig,
): Promise<{ url: string; close(): Promise<void> }> {
  const dist = resolve(await pageDir(() => {}))
  const headers = { 'content-security-policy': policy(config) }
  const server = createServer(({ url = '/' }, response) => {
    const { pathname } = new URL(url, 'http://host')
    if (pathname === '/config.json') {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(config))
      return
    }
    const asked = join(dist, pathname)
    const file = extname(asked) !== '' && existsSync(asked) ? asked : join(dist, 'index.html')
    response.writeHead(200, { ...headers, 'content-type': TYPES[extname(file)] ?? 'text/plain' })
    response.end(readFileSync(file))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
