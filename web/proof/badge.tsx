/** The result of this browser's own verification of a batch. */
import { Button } from '../ui/controls.tsx'
import type { Verification } from './verdict.ts'

interface Shown {
  readonly colour: 'green' | 'amber' | 'grey' | 'red'
  readonly title: string
  readonly text: string
}

const CHECKING: Shown = { colour: 'grey', title: 'Checking', text: 'Your browser recomputes the batch.' }

export function shownOf(verification: Verification | null): Shown {
  if (verification === null) return CHECKING
  const { verdict, tookMs } = verification
  const how = `Your browser recomputed price, allocation, pairs and fees in ${Math.max(1, Math.round(tookMs))} ms, with equal result.`
  switch (verdict.state) {
    case 'verified':
      return {
        colour: 'green',
        title: 'Verified by this browser',
        text: `${how} It equals ${verdict.transactions === 1 ? 'the settlement transaction' : `all ${verdict.transactions} settlement transactions`} that your node returned.`,
      }
    case 'unmined':
      return {
        colour: 'amber',
        title: 'Recomputed, not mined yet',
        text: `${how} ${verdict.mined} of ${verdict.parts} settlement transactions are mined.`,
      }
    case 'voided':
      return {
        colour: 'amber',
        title: 'Voided',
        text: `${how} Its settlement failed: its fills do not count.`,
      }
    case 'recomputed':
      return {
        colour: 'grey',
        title: 'Recomputed, not compared with the chain',
        text:
          verdict.reason === null
            ? `${how} Choose a node to compare it with the settlement transactions.`
            : `${how} It could not be compared: ${verdict.reason}.`,
      }
    default:
      return {
        colour: 'red',
        title: 'Does not hold',
        text: 'What the exchange or the chain states differs from what the rules give.',
      }
  }
}

export function ProofBadge({
  verification,
  onRetry,
}: {
  verification: Verification | null
  onRetry: () => void
}) {
  const { colour, title, text } = shownOf(verification)
  const found = verification?.verdict.state === 'different' ? verification.verdict.differences : []
  return (
    <section
      class={`proof ${colour}`}
      aria-label="Proof"
      data-testid="proof"
      data-colour={verification === null ? 'checking' : colour}
      role="status"
    >
      <span class="proof-mark" aria-hidden="true">
        {colour === 'green' ? '✓' : colour === 'red' ? '✕' : colour === 'amber' ? '…' : '?'}
      </span>
      <div>
        <h2>{title}</h2>
        <p>{text}</p>
        {found.length === 0 ? null : (
          <ul class="mono">
            {found.slice(0, 8).map((each) => (
              <li key={each}>{each}</li>
            ))}
          </ul>
        )}
      </div>
      <Button class="small" onClick={onRetry}>
        Verify again
      </Button>
    </section>
  )
}
