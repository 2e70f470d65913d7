/** The page to read the OpenAPI description, and its icon. */
import scalar from '@scalar/fastify-api-reference'
import type { FastifyInstance } from 'fastify'
import { DOCUMENT_HEADERS } from './security-headers.ts'

/** The page needs its own script and inline styles. */
const POLICY =
  "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; " +
  "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:"

/** The maker of the viewer has no option for its links. */
const CSS = 'a[href*="scalar.com"] { display: none !important; }'

/** Browsers request it by this path, whatever a page names. */
const ICON_PATH = '/favicon.ico'
const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#0b3d5c"/>' +
  '<path d="M3 5h10M3 8h6M3 11h10" stroke="#fff" stroke-width="2"/></svg>'

export async function serveDocsPage(app: FastifyInstance, descriptionPath: string): Promise<void> {
  app.get(ICON_PATH, { schema: { hide: true } }, (_request, reply) =>
    reply.type('image/svg+xml').header('cache-control', 'public, max-age=86400').send(ICON),
  )
  await app.register(scalar, {
    routePrefix: '/docs',
    configuration: {
      url: descriptionPath,
      pageTitle: 'Clearbatch API',
      favicon: ICON_PATH,
      customCss: CSS,
      telemetry: false,
      withDefaultFonts: false,
      hideClientButton: true,
      showDeveloperTools: 'never',
      agent: { disabled: true },
      mcp: { disabled: true },
    },
    hooks: {
      onRequest: (_request, reply, done) => {
        reply.headers({ ...DOCUMENT_HEADERS, 'content-security-policy': POLICY })
        done()
      },
    },
  })
}
