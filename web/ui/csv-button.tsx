/** Saves a list of the account as a file. */
import { Button } from './controls.tsx'

export const CsvButton = ({ name, onSave }: { name: string; onSave: () => Promise<void> }) => (
  <Button class="small" aria-label={`${name} as CSV`} onClick={() => void onSave()}>
    CSV
  </Button>
)
