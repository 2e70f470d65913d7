/** The fastify route that does nothing, on the port that it reports. */
import fastify from 'fastify'

const app = fastify()
app.get('/empty', async () => ({}))
await app.listen({ port: 0, host: '127.0.0.1' })
process.send?.(app.server.address())
