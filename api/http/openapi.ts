/** Serves the OpenAPI description, generated from the schemas that validate requests, and a page to read it. */
import swagger from '@fastify/swagger'
import scalar from '@scalar/fastify-api-reference'
import type { FastifyInstance } from 'fastify'
import { withComponents } from './components.ts'
import { describedSchema } from './responses.ts'

const DESCRIPTION = `
Non-custodial derivatives exchange: frequent batch auctions about every 200 ms, settled on the chain.

Numbers in requests are JSON numbers or decimal strings; a JSON number that a double would round is rejected.
Every amount in an answer appears twice: \`x\` (number) and \`x_e18_raw\` (string, times 1e18, exact).
Errors are \`{message, details}\` with \`details.code\`. Errors of commands also have \`details.outcome\`; errors of reads have none.
`.trim()

/** The documentation page needs its own script and inline styles. */
const DOCS_POLICY =
  "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; " +
  "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:"

const SIGNED_IN = [{ apiKey: [] }, { bearer: [] }]

interface Generated {
  readonly paths: Parameters<typeof withComponents>[0]
  readonly components: object
}

function completed(generated: Generated): object {
  const { paths, schemas } = withComponents(generated.paths)
  return { ...generated, paths, components: { ...generated.components, schemas } }
}

export async function describe(app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      servers: [{ url: '/', description: 'The exchange that serves this description.' }],
      info: { title: 'Clearbatch', version: '0', description: DESCRIPTION },
      components: {
        securitySchemes: {
          apiKey: {
            type: 'apiKey',
            in: 'header',
            name: 'Authorization',
            description: '`Key <API_KEY>`, the personal API key.',
          },
          bearer: { type: 'http', scheme: 'bearer', description: 'Identity token of the identity provider.' },
        },
      },
    },
    transform: ({ schema, url, route }) => {
      const access = route.config?.access
      const security = access === 'user' ? SIGNED_IN : access === 'optional' ? [{}, ...SIGNED_IN] : []
      return { url, schema: { ...describedSchema({ ...route, schema }), security } }
    },
  })
  let description: object | undefined
  app.get('/v0/openapi.json', { schema: { hide: true } }, () => {
    description ??= completed(app.swagger() as never)
    return description
  })
  await app.register(scalar, {
    routePrefix: '/docs',
    configuration: {
      url: '/v0/openapi.json',
      pageTitle: 'Clearbatch API',
      telemetry: false,
      withDefaultFonts: false,
      hideClientButton: true,
      showDeveloperTools: 'never',
      agent: { disabled: true },
      mcp: { disabled: true },
    },
    hooks: {
      onRequest: (_request, reply, done) => {
        reply.header('content-security-policy', DOCS_POLICY)
        done()
      },
    },
  })
}
