// SPDX-License-Identifier: Apache-2.0
// Written by `make generated` from treeclaim/model/flavors.py and server_flavors.py.
export const SIZES = Object.freeze({"vcpus": "vcpus", "ram": "ram", "disk": "disk", "ephemeral": "ephemeral", "os-flv-ext-data:ephemeral": "ephemeral", "swap": "swap"});
export const SPECS = Object.freeze(["extra_specs", "properties"]);
export const OTHERS = Object.freeze(["id", "name", "description", "rxtx_factor", "rxtx factor", "links", "is_public", "is public", "is_disabled", "access_project_ids", "location", "original_name", "created_at", "updated_at", "os-flv-disabled:disabled", "os-flavor-access:is_public"]);
export const TRANSLATED = Object.freeze(["hw:cpu_policy", "hw:cpu_dedicated_mask", "hw:emulator_threads_policy", "hw:cpu_thread_policy", "hw:mem_encryption", "hw:tpm_version"]);
