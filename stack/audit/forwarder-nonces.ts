/** Compares the next nonce of every signer of forward requests in chain, journal and write side. */
import type { JsonRpcProvider } from 'ethers'
import { sql } from 'kysely'
import type { Tx } from '../../db/client.ts'
import { Forwarder__factory } from '../../typechain-types/factories/Forwarder__factory.ts'
import { compare, put } from './values.ts'

interface SignerNonces {
  readonly signer: string
  readonly stored: number
  readonly journaled: number
}

/** All users, and other accounts whose requests the forwarder has executed. */
const readNonces = (tx: Tx) =>
  sql<SignerNonces>`
    with executed as (
      select distinct on (row->>'signer') row->>'signer' as signer,
        case when (row->>'rollback')::boolean then (row->>'before')::bigint else (row->>'nonce')::bigint + 1 end as next_nonce
      from journal where shard = 'accounts' and row->>'kind' = 'forward_request_executed'
      order by row->>'signer', seq desc
    )
    select s.signer, coalesce(n.next_nonce, 0) as stored, coalesce(e.next_nonce, 0) as journaled
    from (
      select address as signer from users union select signer from forwarder_nonces union select signer from executed
    ) s left join forwarder_nonces n using (signer) left join executed e using (signer)
  `.execute(tx)

export async function forwarderNonceDifferences(
  tx: Tx,
  { provider, forwarder }: { readonly provider: JsonRpcProvider; readonly forwarder: string },
  blockTag: number,
): Promise<string[]> {
  const contract = Forwarder__factory.connect(forwarder, provider)
  const [chain, journal, writeSide] = [new Map(), new Map(), new Map()] as const
  for (const { signer, stored, journaled } of (await readNonces(tx)).rows) {
    const name = `signer ${signer}`
    put(chain, name, { 'forwarder nonce': await contract.nonces(signer, { blockTag }) })
    put(journal, name, { 'forwarder nonce': journaled })
    put(writeSide, name, { 'forwarder nonce': stored })
  }
  const sources = [
    { name: 'journal', values: journal },
    { name: 'write side', values: writeSide },
  ]
  return compare({ name: 'chain', values: chain }, sources)
}
