// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/**
 * @title Custody of the collateral token and the ledger over it
 * @notice Free balances per account and one pool per market. A market moves value between free balances and its own pool,
 * never more out of it than it holds. At all times
 * `sum of free + sum of pending + sum of pools + sum of fees = tokens held` (donations aside).
 *
 * Withdrawing takes two steps. What is requested leaves *free* at once, but still backs batches whose `asOf` is at most
 * the time of the request + G; a debit takes free first, then pending. It is paid once no such batch can be settled any
 * more: later than the request + G + L. A second request restarts the clock for the whole amount.
 *
 * Listing a market lets its code pull free balances: it is the most dangerous act here.
 */
interface IMarginBank {
    struct Account {
        uint96 free;
        /// Requested for withdrawal and not yet paid.
        uint96 pending;
        /// Unix seconds of the latest request.
        uint64 requestedAt;
    }

    struct Market {
        uint112 pool;
        /// Fees charged and not yet collected.
        uint112 fees;
        bool listed;
    }

    event Deposited(address indexed account, address indexed payer, uint256 amount);
    event WithdrawalRequested(address indexed account, uint256 amount, uint256 pending, uint64 requestedAt);
    event Withdrawn(address indexed account, uint256 amount);
    event MarketListed(address indexed market, bytes32 codeHash);
    event FeesCollected(address indexed market, address indexed treasury, uint256 amount);
    event TreasuryChanged(address indexed previous, address indexed treasury);

    error AmountZero();
    error AccountZero();
    error AmountTooLarge(uint256 amount);
    error FreeBalanceInsufficient(address account, uint256 available, uint256 asked);
    error NothingPending(address account);
    error WithdrawalEarly(address account, uint256 availableAfter);
    error MarketNotListed(address market);
    error MarketAlreadyListed(address market);
    error MarketWithoutCode(address market);
    error PoolInsufficient(address market, uint256 pool, uint256 asked);

    // ------------------------------------------------------------------ deposits

    /// @notice Credits the caller with what arrives of `amount`.
    function deposit(uint256 amount) external;

    /// @notice Credits `account` with what arrives of the caller's `amount`.
    function depositFor(address account, uint256 amount) external;

    /// @notice As `deposit`, with the token's permit. A permit that was already used does no harm if the allowance stands.
    function depositWithPermit(uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s) external;

    // ------------------------------------------------------------------ withdrawals

    function requestWithdrawal(uint256 amount) external;

    /// @notice Pays everything pending, in full or what settlements left of it.
    function withdraw() external;

    // ------------------------------------------------------------------ markets

    /// @notice Applies one part to the ledger. The market's pool takes the difference: `pool -= sum of deltas + fees`.
    /// Listed markets only.
    /// @param asOf Of the action, in milliseconds: decides whether pending withdrawals back it.
    /// @param fees Charged by this part.
    /// @param deltas One word per account: address (20 bytes), change of its free balance (int96).
    function settle(uint256 asOf, uint256 fees, bytes32[] calldata deltas) external;

    /// @notice Moves the fees of a market to the treasury's free balance. Anyone may call.
    function collectFees(address market) external;

    // ------------------------------------------------------------------ management

    function listMarket(address market) external;
    function setTreasury(address newTreasury) external;

    // ------------------------------------------------------------------ views

    function token() external view returns (address);
    function treasury() external view returns (address);
    function account(address owner) external view returns (Account memory);
    function market(address trader) external view returns (Market memory);
}
