/** Serves the OpenAPI description, generated from the schemas that validate requests, and a page to read it. */
import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import { withComponents } from './components.ts'
import { serveDocsPage } from './docs-page.ts'
import { exampleOf } from './examples.ts'
import { HEADERS } from './response-headers.ts'
import { answerHeaders, errorResponses, type Route } from './responses.ts'
import { serveDocument } from './static-document.ts'

const DESCRIPTION = `
Non-custodial derivatives exchange: frequent batch auctions about every 200 ms, settled on the chain.

Numbers in requests are JSON numbers or decimal strings; a JSON number that a double would round is rejected.
Every amount in an answer appears twice: \`x\` (number) and \`x_e18_raw\` (string, times 1e18, exact).
Errors are \`{message, details}\` with \`details.code\`. Errors of commands also have \`details.outcome\`; errors of reads have none.

Answers can get further fields, and errors further codes (\`x-extensible\`): ignore fields that you do not know, and treat an unknown
code by its status and \`details.retryable\`. Everything else in this description changes only with an entry in \`docs/api-changes.md\`.
`.trim()

const PATH = '/v0/openapi.json'

const SIGNED_IN = [{ apiKey: [] }, { bearer: [] }]

interface Contained {
  readonly content?: Readonly<Record<string, { readonly example?: unknown; readonly examples?: unknown }>>
}

interface Operation {
  readonly operationId: string
  readonly requestBody?: Contained
  readonly responses: Readonly<Record<string, Contained & { readonly description: string }>>
}

interface Generated {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: object
}

/** The body or the answer with an example, unless it has one. */
function withExample<Part extends Contained>(part: Part, schema: unknown, isRequest: boolean): Part {
  const json = part.content?.['application/json']
  if (json === undefined || json.example !== undefined || json.examples !== undefined) return part
  const example = exampleOf(schema as object, isRequest)
  return { ...part, content: { ...part.content, 'application/json': { ...json, example } } }
}

/** The operation with examples and headers, and with its errors by status instead of by range. */
function describedOperation(operation: Operation, route: Route, components: Map<string, object>): object {
  const headers = answerHeaders(route)
  const schemas = (route.schema?.response ?? {}) as Readonly<Record<string, object>>
  const answers = Object.entries(operation.responses)
    .filter(([status]) => !/^[45]XX$/.test(status))
    .map(([status, answer]) => {
      const description = answer.description.replace(/^Default Response$/, 'The answer.')
      return [status, { ...withExample(answer, schemas[status], false), description, headers }]
    })
  const { requestBody } = operation
  return {
    ...operation,
    ...(requestBody && { requestBody: withExample(requestBody, route.schema?.body, true) }),
    responses: { ...Object.fromEntries(answers), ...errorResponses(route, components) },
  }
}

const mapValues = <Value, Mapped>(
  record: Readonly<Record<string, Value>>,
  map: (value: Value) => Mapped,
): Record<string, Mapped> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]))

/** `routes`: by operation id. */
function completed(generated: Generated, routes: ReadonlyMap<string, Route>): object {
  const common = new Map<string, object>()
  const described = mapValues(generated.paths, (methods) =>
    mapValues(methods, (operation) =>
      describedOperation(operation, routes.get(operation.operationId) as Route, common),
    ),
  )
  const sorted = Object.fromEntries([...common].sort(([one], [other]) => (one < other ? -1 : 1)))
  // Both refer to the same schemas.
  const { paths: referring, schemas } = withComponents({ ...described, responses: sorted } as never)
  const { responses, ...paths } = referring
  return {
    ...generated,
    paths,
    components: { ...generated.components, schemas, responses, headers: HEADERS },
  }
}

export async function describe(app: FastifyInstance): Promise<void> {
  const routes = new Map<string, Route>()
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
      if (schema.operationId !== undefined) routes.set(schema.operationId, { ...route, schema })
      return { url, schema: { ...schema, security } }
    },
  })
  serveDocument(app, PATH, () => completed(app.swagger() as never, routes))
  await serveDocsPage(app, PATH)
}
