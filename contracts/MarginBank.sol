// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {Restricted} from "./base/Restricted.sol";
import {IMarginBank} from "./interfaces/IMarginBank.sol";
import {G, L} from "./libraries/Delays.sol";

/// @title Custody of the collateral token and the ledger over it
contract MarginBank is IMarginBank, Restricted, ReentrancyGuardTransient {
    using SafeERC20 for IERC20;

    // ------------------------------------------------------------------ types

    /// @dev An account in one slot, from the low bit: free 96 | pending 96 | requestedAt 64. A struct, so that its place is
    /// worked out once for read and write.
    struct Word {
        uint256 bits;
    }

    // ------------------------------------------------------------------ constants, immutables

    uint256 private constant FREE = type(uint96).max;

    IERC20 private immutable _TOKEN;

    // ------------------------------------------------------------------ storage

    mapping(address owner => Word) private _accounts;
    mapping(address trader => Market) private _markets;

    /// @inheritdoc IMarginBank
    address public treasury;

    // ------------------------------------------------------------------ constructor

    constructor(address collateral, address access, address firstTreasury) Restricted(access) {
        _TOKEN = IERC20(collateral);
        _setTreasury(firstTreasury);
    }

    // ------------------------------------------------------------------ deposits

    /// @inheritdoc IMarginBank
    function deposit(uint256 amount) external nonReentrant {
        _deposit(msg.sender, amount);
    }

    /// @inheritdoc IMarginBank
    function depositFor(address owner, uint256 amount) external nonReentrant {
        _deposit(owner, amount);
    }

    /// @inheritdoc IMarginBank
    function depositWithPermit(uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s) external nonReentrant {
        // Anyone may have spent the permit already; the transfer below fails if the allowance is missing.
        try IERC20Permit(address(_TOKEN)).permit(msg.sender, address(this), amount, deadline, v, r, s) {} catch {}
        _deposit(msg.sender, amount);
    }

    function _deposit(address owner, uint256 amount) private {
        // Check: somebody receives something.
        if (owner == address(0)) revert AccountZero();
        if (amount == 0) revert AmountZero();

        // Interaction: the guard keeps everything else out until the credit stands.
        uint256 before = _TOKEN.balanceOf(address(this));
        _TOKEN.safeTransferFrom(msg.sender, address(this), amount);
        uint256 received = _TOKEN.balanceOf(address(this)) - before;

        // Effect: credit what has arrived.
        _credit(owner, received);
        emit Deposited(owner, msg.sender, received);
    }

    // ------------------------------------------------------------------ withdrawals

    /// @inheritdoc IMarginBank
    function requestWithdrawal(uint256 amount) external {
        Account memory entry = _unpack(_accounts[msg.sender].bits);
        // Check: it is there.
        if (amount == 0) revert AmountZero();
        if (amount > entry.free) revert FreeBalanceInsufficient(msg.sender, entry.free, amount);

        // Effect: it leaves free at once; the clock restarts for everything pending.
        entry.free -= uint96(amount);
        entry.pending = _toUint96(entry.pending + amount);
        entry.requestedAt = uint64(block.timestamp);
        _accounts[msg.sender].bits = _pack(entry);
        emit WithdrawalRequested(msg.sender, amount, entry.pending, entry.requestedAt);
    }

    /// @inheritdoc IMarginBank
    function withdraw() external nonReentrant {
        Account memory entry = _unpack(_accounts[msg.sender].bits);
        // Check: something is pending, and no batch that it backs can be settled any more.
        if (entry.pending == 0) revert NothingPending(msg.sender);
        uint256 availableAfter = entry.requestedAt + (G + L) / 1000;
        if (block.timestamp <= availableAfter) revert WithdrawalEarly(msg.sender, availableAfter);

        // Effect: debit before paying.
        uint256 amount = entry.pending;
        entry.pending = 0;
        _accounts[msg.sender].bits = _pack(entry);
        emit Withdrawn(msg.sender, amount);

        // Interaction: pay the owner.
        _TOKEN.safeTransfer(msg.sender, amount);
    }

    // ------------------------------------------------------------------ markets

    /// @inheritdoc IMarginBank
    function settle(uint256 asOf, uint256 fees, bytes32[] calldata deltas) external {
        Market memory entry = _markets[msg.sender];
        // Check: the market is one of ours.
        if (!entry.listed) revert MarketNotListed(msg.sender);

        // Effect: accounts first, then the pool takes the difference.
        int256 paidOut = int256(fees);
        // Far fewer than 2^96 deltas, each below 2^96. The decoder has checked that they all lie in calldata.
        unchecked {
            uint256 next;
            assembly ("memory-safe") {
                next := deltas.offset
            }
            for (uint256 end = next + 32 * deltas.length; next != end; next += 32) {
                uint256 word;
                assembly ("memory-safe") {
                    word := calldataload(next)
                }
                int256 delta = int96(uint96(word));
                _move(address(uint160(word >> 96)), delta, asOf);
                paidOut += delta;
            }
        }
        int256 pool = int256(uint256(entry.pool)) - paidOut;
        if (pool < 0) revert PoolInsufficient(msg.sender, entry.pool, uint256(paidOut));
        entry.pool = _toUint112(uint256(pool));
        entry.fees = _toUint112(entry.fees + fees);
        _markets[msg.sender] = entry;
    }

    /// @dev A debit takes free first, then what is pending, as long as the request does not bind this batch yet.
    function _move(address owner, int256 delta, uint256 asOf) private {
        Word storage place = _accounts[owner];
        uint256 word = place.bits;
        uint256 free = word & FREE;
        // |delta| < 2^96. Free is the low field, so a change that stays within it is a change of the word.
        unchecked {
            if (delta >= 0) {
                if (free + uint256(delta) > FREE) revert AmountTooLarge(free + uint256(delta));
                place.bits = word + uint256(delta);
                return;
            }
            uint256 debit = uint256(-delta);
            place.bits = debit <= free ? word - debit : _drawPending(owner, word, debit, asOf);
        }
    }

    /// @dev All of free, and the rest of `debit` out of pending.
    function _drawPending(address owner, uint256 word, uint256 debit, uint256 asOf) private pure returns (uint256) {
        Account memory entry = _unpack(word);
        uint256 missing = debit - entry.free;
        uint256 backing = asOf <= uint256(entry.requestedAt) * 1000 + G ? entry.pending : 0;
        if (missing > backing) revert FreeBalanceInsufficient(owner, entry.free + backing, debit);
        entry.free = 0;
        // Not more than pending.
        entry.pending -= uint96(missing);
        return _pack(entry);
    }

    /// @inheritdoc IMarginBank
    function collectFees(address trader) external {
        uint256 amount = _markets[trader].fees;
        if (amount == 0) revert AmountZero();
        _markets[trader].fees = 0;
        _credit(treasury, amount);
        emit FeesCollected(trader, treasury, amount);
    }

    // ------------------------------------------------------------------ management

    /// @inheritdoc IMarginBank
    function listMarket(address trader) external restricted {
        if (_markets[trader].listed) revert MarketAlreadyListed(trader);
        if (trader.code.length == 0) revert MarketWithoutCode(trader);
        _markets[trader].listed = true;
        emit MarketListed(trader, trader.codehash);
    }

    /// @inheritdoc IMarginBank
    function setTreasury(address newTreasury) external restricted {
        _setTreasury(newTreasury);
    }

    function _setTreasury(address newTreasury) private {
        if (newTreasury == address(0)) revert AccountZero();
        emit TreasuryChanged(treasury, newTreasury);
        treasury = newTreasury;
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc IMarginBank
    function token() external view returns (address) {
        return address(_TOKEN);
    }

    /// @inheritdoc IMarginBank
    function account(address owner) external view returns (Account memory) {
        return _unpack(_accounts[owner].bits);
    }

    /// @inheritdoc IMarginBank
    function market(address trader) external view returns (Market memory) {
        return _markets[trader];
    }

    // ------------------------------------------------------------------ internals

    function _credit(address owner, uint256 amount) private {
        Account memory entry = _unpack(_accounts[owner].bits);
        entry.free = _toUint96(entry.free + amount);
        _accounts[owner].bits = _pack(entry);
    }

    function _unpack(uint256 word) private pure returns (Account memory) {
        return Account({free: uint96(word), pending: uint96(word >> 96), requestedAt: uint64(word >> 192)});
    }

    function _pack(Account memory entry) private pure returns (uint256) {
        return uint256(entry.free) | (uint256(entry.pending) << 96) | (uint256(entry.requestedAt) << 192);
    }

    function _toUint96(uint256 amount) private pure returns (uint96) {
        if (amount > type(uint96).max) revert AmountTooLarge(amount);
        return uint96(amount);
    }

    function _toUint112(uint256 amount) private pure returns (uint112) {
        if (amount > type(uint112).max) revert AmountTooLarge(amount);
        return uint112(amount);
    }
}
