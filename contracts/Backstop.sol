// SPDX-License-Identifier: MIT
pragma solidity 0.8.36;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Restricted} from "./base/Restricted.sol";
import {IAccountManager} from "./interfaces/IAccountManager.sol";
import {IBackstop} from "./interfaces/IBackstop.sol";
import {IMarginBank} from "./interfaces/IMarginBank.sol";

/// @title An account that inherits positions in liquidation
contract Backstop is IBackstop, Restricted {
    using SafeERC20 for IERC20;

    // ------------------------------------------------------------------ immutables, storage

    IMarginBank private immutable _BANK;
    IAccountManager private immutable _ACCOUNT_MANAGER;

    /// @inheritdoc IBackstop
    mapping(address market => bool) public backs;

    // ------------------------------------------------------------------ constructor

    constructor(address access, address marginBank, address keys) Restricted(access) {
        _BANK = IMarginBank(marginBank);
        _ACCOUNT_MANAGER = IAccountManager(keys);
    }

    // ------------------------------------------------------------------ markets and trading keys

    /// @inheritdoc IBackstop
    function setBacked(address market, bool backed) external restricted {
        backs[market] = backed;
        emit MarketBacked(market, backed);
    }

    /// @inheritdoc IBackstop
    function registerSessionKey(address key, uint8 permissions) external restricted {
        _ACCOUNT_MANAGER.registerSessionKey(key, permissions);
    }

    /// @inheritdoc IBackstop
    function revokeSessionKey(address key) external restricted {
        _ACCOUNT_MANAGER.revokeSessionKey(key);
    }

    // ------------------------------------------------------------------ funds

    /// @inheritdoc IBackstop
    function requestWithdrawal(uint256 amount) external restricted {
        _BANK.requestWithdrawal(amount);
    }

    /// @inheritdoc IBackstop
    function withdraw(address receiver) external restricted {
        if (receiver == address(0)) revert ReceiverZero();
        // Pays the whole token balance: tokens that were transferred here by mistake are withdrawn too.
        _BANK.withdraw();
        IERC20 token = IERC20(_BANK.token());
        uint256 amount = token.balanceOf(address(this));
        emit Paid(receiver, amount);
        token.safeTransfer(receiver, amount);
    }

    // ------------------------------------------------------------------ views

    /// @inheritdoc IBackstop
    function bank() external view returns (address) {
        return address(_BANK);
    }

    /// @inheritdoc IBackstop
    function accountManager() external view returns (address) {
        return address(_ACCOUNT_MANAGER);
    }
}
