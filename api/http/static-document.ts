/**
 * Serves a constant JSON document, serialized and compressed once, with an `ETag`. Serializing the API description per
 * request would cost as much as 100 other reads.
 */
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { constants, gzip } from 'node:zlib'
import type { FastifyInstance } from 'fastify'

interface Encoded {
  readonly plain: Buffer
  readonly compressed: Buffer
  readonly digest: string
}

async function encode(document: object): Promise<Encoded> {
  const plain = Buffer.from(JSON.stringify(document))
  const compressed = await promisify(gzip)(plain, { level: constants.Z_BEST_COMPRESSION })
  return { plain, compressed, digest: createHash('sha256').update(plain).digest('base64url').slice(0, 27) }
}

/** Whether the header `Accept-Encoding` allows gzip. */
export const acceptsGzip = (header: string | string[] | undefined): boolean =>
  String(header ?? '')
    .split(',')
    .some((each) => /^\s*(gzip|\*)\s*(;\s*q=(1(\.0*)?|0?\.\d*[1-9]\d*)\s*)?$/i.test(each))

/** `build` is called once. */
export function serveDocument(app: FastifyInstance, path: string, build: () => object): void {
  let encoded: Promise<Encoded> | undefined
  app.get(path, { config: { cached: true }, schema: { hide: true } }, async ({ headers }, reply) => {
    encoded ??= encode(build())
    const { plain, compressed, digest } = await encoded
    const isCompressed = acceptsGzip(headers['accept-encoding'])
    const vary = reply.getHeader('vary')
    reply.header('vary', vary === undefined ? 'accept-encoding' : `${String(vary)}, accept-encoding`)
    reply.type('application/json; charset=utf-8')
    if (isCompressed) reply.header('content-encoding', 'gzip')
    return reply
      .header('etag', `"${digest}${isCompressed ? '-gzip' : ''}"`)
      .send(isCompressed ? compressed : plain)
  })
}
