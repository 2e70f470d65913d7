/**
 * Measures what an API key or identity token adds to a read, and how fast false credentials are refused. Fails if a
 * median difference exceeds 0.3 ms.
 */
// npm run bench:auth -- [--rounds 4000]
//
// The differences are upper bounds: `/v0/me/limits` reads no table but returns more than `/v0/time`.
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { argumentsOf, positiveNumber, withDefault } from '../service/command-line.ts'
import { percentile } from '../stack/replay/statistics.ts'
import { startIsolated } from './intake/isolated-target.ts'
import { accountOf } from './intake/orders.ts'

const TARGET_MS = 0.3
const WARM_UP = 500
const { rounds } = argumentsOf({
  command: 'npm run bench:auth --',
  flags: { rounds: withDefault(positiveNumber('rounds'), 4_000) },
})
const [iss, aud] = ['https://identity.example', 'bench']

const { publicKey, privateKey } = await generateKeyPair('ES256')
const keys = [{ ...(await exportJWK(publicKey)), kid: 'bench', alg: 'ES256' }]
const provider = http.createServer((_request, response) => response.end(JSON.stringify({ keys })))
provider.listen(0, '127.0.0.1')
await once(provider, 'listening')

const target = await startIsolated({
  AUTH_JWKS_URL: `http://127.0.0.1:${(provider.address() as AddressInfo).port}/`,
  ...{ AUTH_ISSUER: iss, AUTH_AUDIENCE: aud, RATE_LIMIT_FAILURES: '1000000' },
})
const now = Math.floor(Date.now() / 1000)
const token = await new SignJWT({ iss, aud, exp: now + 3_600, wallet_address: accountOf(0).address })
  .setProtectedHeader({ alg: 'ES256', kid: 'bench' })
  .sign(privateKey)

const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })

/** Milliseconds from the request to the end of its answer. */
async function ask(path: string, authorization: string | null, status: number): Promise<number> {
  const started = performance.now()
  const headers = authorization === null ? {} : { authorization }
  const request = http.get({ port: target.port, host: '127.0.0.1', path, headers, agent })
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  for await (const _ of response);
  if (response.statusCode !== status) throw new Error(`${path} answered ${response.statusCode}`)
  return performance.now() - started
}

const asked = {
  'no credential': () => ask('/v0/time', null, 200),
  'API key': () => ask('/v0/me/limits', `Key ${target.keys[0]}`, 200),
  'identity token': () => ask('/v0/me/limits', `Bearer ${token}`, 200),
  'invented key': () => ask('/v0/me/limits', 'Key cb_invented', 401),
}
const times = new Map<string, number[]>(Object.keys(asked).map((name) => [name, []]))
for (let round = -WARM_UP; round < rounds; round++) {
  for (const [name, measure] of Object.entries(asked)) {
    const ms = await measure()
    if (round >= 0) times.get(name)?.push(ms)
  }
}
await target.stop()
provider.close()
agent.destroy()

const median = (name: string): number => percentile(times.get(name) ?? [], 0.5)
const base = median('no credential')
const rows = Object.keys(asked).map((name) => ({
  request: name,
  median_ms: Number(median(name).toFixed(3)),
  p99_ms: Number(percentile(times.get(name) ?? [], 0.99).toFixed(3)),
  added_ms: Number((median(name) - base).toFixed(3)),
}))
console.table(rows)
console.log(JSON.stringify({ bench: 'auth', rounds, rows, target_ms: TARGET_MS }))
process.exitCode = rows.some(({ added_ms }) => added_ms > TARGET_MS) ? 1 : 0
