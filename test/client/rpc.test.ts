import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Rpc } from '../../client/chain/rpc.ts'
import type { ClearbatchError } from '../../client/errors.ts'

const URL_WITH_SECRET = 'https://node.example/v1/secret'

const failureOf = async (send: typeof fetch, method: string): Promise<ClearbatchError> =>
  new Rpc(URL_WITH_SECRET, send).call(method).then(
    () => {
      throw new Error('the call was answered')
    },
    (error: ClearbatchError) => error,
  )

const silent: typeof fetch = () => Promise.reject(new TypeError('fetch failed'))
const faulty: typeof fetch = async () => new Response('', { status: 502 })

describe('client/chain/rpc', () => {
  it('when the node gives no answer, a read has no outcome, and that of a sent transaction is unknown', async () => {
    for (const send of [silent, faulty]) {
      expect(await failureOf(send, 'eth_chainId')).to.include({ status: 0, outcome: null })
      expect(await failureOf(send, 'eth_sendRawTransaction')).to.include({ status: 0, outcome: 'unknown' })
    }
  })

  it('when the node gives no answer, the error names its host without the path, which may be a secret', async () => {
    for (const send of [silent, faulty]) {
      const { message, details, cause } = await failureOf(send, 'eth_chainId')
      expect(details).to.deep.equal({ node: 'https://node.example' })
      expect(`${message} ${cause}`).not.to.include('secret')
    }
  })
})
