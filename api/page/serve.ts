/**
 * Serves the page of `web/` beside the REST interface: its screens by exact path, its files under `/assets/`. Any other
 * path stays a JSON error of the API.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import serveFiles from '@fastify/static'
import type { FastifyInstance } from 'fastify'
import { DOCUMENT_HEADERS } from '../http/security-headers.ts'
import type { PageConfig } from './config.ts'

/** The screens, as `web/base/router.ts` knows them. */
export const SCREENS = [
  '/',
  '/trade',
  '/trade/:symbol',
  '/batch/:market/:id',
  '/markets',
  '/portfolio',
  '/account',
  '/risk',
  '/status',
  '/settings',
  '/signed-in',
  '/operate',
] as const

const hidden = { config: { access: 'internal' }, schema: { hide: true } } as const

/** Scripts, styles and workers only from the page's own files; connections only to this api and the configured hosts. */
export function policyOf(
  { issuerUrl, rpcUrls }: Pick<PageConfig, 'issuerUrl' | 'rpcUrls'>,
  host: string,
): string {
  const others = [issuerUrl, ...rpcUrls].flatMap((url) => (url === null ? [] : [new URL(url).origin]))
  // Older browsers do not count the live feed of the same host as 'self'.
  const feeds = [`ws://${host}`, `wss://${host}`]
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "worker-src 'self'",
    `connect-src ${["'self'", ...feeds, ...new Set(others)].join(' ')}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

const HOST = /^[\w.:[\]-]{1,255}$/

export async function servePage(app: FastifyInstance, config: PageConfig): Promise<void> {
  const index = readFileSync(join(config.dir, 'index.html'))
  const icon = join(config.dir, 'icon.svg')
  // A request without a usable host still gets a page; its feed is that of the same origin.
  const hostOf = (host: string | undefined): string =>
    host !== undefined && HOST.test(host) ? host : 'localhost'
  for (const path of SCREENS)
    app.get(path, hidden, ({ headers }, reply) =>
      reply
        .headers({ ...DOCUMENT_HEADERS, 'content-security-policy': policyOf(config, hostOf(headers.host)) })
        .header('cache-control', 'no-cache')
        .type('text/html; charset=utf-8')
        .send(index),
    )
  app.get('/config.json', hidden, (_request, reply) =>
    reply.header('cache-control', 'no-cache').send({
      issuer_url: config.issuerUrl,
      client_id: config.clientId,
      rpc_urls: config.rpcUrls,
    }),
  )
  if (existsSync(icon)) {
    const content = readFileSync(icon)
    app.get('/icon.svg', hidden, (_request, reply) =>
      reply.header('cache-control', 'public, max-age=86400').type('image/svg+xml').send(content),
    )
  }
  await app.register(serveFiles, {
    root: join(config.dir, 'assets'),
    prefix: '/assets/',
    index: false,
    decorateReply: false,
    preCompressed: true,
    immutable: true,
    maxAge: '365d',
    // A worker has the policy of its own file: it connects to the api and to the visitor's node.
    setHeaders: (reply) => {
      reply.header('content-security-policy', policyOf(config, hostOf(reply.request.headers.host)))
    },
  })
}
