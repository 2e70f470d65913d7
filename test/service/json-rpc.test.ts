/** JSON-RPC requests to a node, whatever it answers. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { createSend, RpcError } from '../../service/json-rpc.ts'

const TIMEOUT_MS = 300

describe('a JSON-RPC request', () => {
  let node: Server
  let answer: { readonly status?: number; readonly body: object } | null
  let authorization: string | undefined

  before(async () => {
    node = createServer((request, response) => {
      authorization = request.headers.authorization
      if (answer !== null) response.writeHead(answer.status ?? 200).end(JSON.stringify(answer.body))
    })
    await new Promise<void>((resolve) => node.listen(0, '127.0.0.1', resolve))
  })
  after(() => {
    node.close()
    node.closeAllConnections()
  })

  const send = (responds: typeof answer, credentials = '') => {
    answer = responds
    const { port } = node.address() as AddressInfo
    return createSend(`http://${credentials}127.0.0.1:${port}`, TIMEOUT_MS)('eth_chainId', [])
  }
  const failureOf = (sent: Promise<unknown>): Promise<unknown> => sent.catch((error: unknown) => error)

  it('when the node answers with a result, it is returned', async () => {
    expect(await send({ body: { result: '0x1' } })).to.equal('0x1')
    expect(authorization).to.equal(undefined)
  })

  it('when the address contains credentials, they are sent', async () => {
    await send({ body: { result: null } }, 'user:p%40ss@')
    expect(authorization).to.equal(`Basic ${btoa('user:p@ss')}`)
  })

  it('when the node answers with an error, its code and message are kept', async () => {
    const failure = await failureOf(send({ body: { error: { code: -32_601, message: 'no such method' } } }))
    expect(failure).to.be.instanceOf(RpcError).with.property('code', -32_601)
    expect(String(failure)).to.include('no such method')
  })

  it('when the error has an HTTP status of its own, its code and data are kept', async () => {
    const error = { code: 3, message: 'execution reverted', data: '0x1234' }
    const failure = await failureOf(send({ status: 400, body: { error } }))
    expect(failure).to.be.instanceOf(RpcError).and.to.deep.include({ code: 3, data: '0x1234' })
  })

  it('when the node answers with another HTTP status, the error names the method and the status', async () => {
    const failure = await failureOf(send({ status: 503, body: {} }))
    expect(String(failure)).to.include('the node answered eth_chainId with HTTP status 503')
  })

  it('when the node does not answer in time, it fails', async () => {
    expect(await failureOf(send(null)))
      .to.be.instanceOf(DOMException)
      .with.property('name', 'TimeoutError')
  })
})
