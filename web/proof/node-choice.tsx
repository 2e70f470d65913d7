/** The node with which proofs are compared: chosen by the visitor, never preset. */
import { wallet } from '../account/wallet.ts'
import { config } from '../base/config.ts'
import { change, settings } from '../base/settings.ts'

export function NodeChoice() {
  const { rpc } = settings.value
  return (
    <label class="node-choice">
      <span class="muted">Compare with the chain through</span>
      <select
        class="select"
        data-testid="node"
        value={rpc ?? ''}
        onChange={({ currentTarget }) =>
          change({ rpc: currentTarget.value === '' ? null : currentTarget.value })
        }
      >
        <option value="">no node</option>
        <option value="wallet" disabled={wallet.value === null}>
          my wallet’s node{wallet.value === null ? ' (connect a wallet)' : ''}
        </option>
        {config.rpcUrls.map((url) => (
          <option key={url} value={url}>
            {new URL(url).host}, named by this site’s operator
          </option>
        ))}
      </select>
    </label>
  )
}
