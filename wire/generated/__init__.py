"""Messages and stubs that scripts/gen_protos makes from protos/*.proto; not edited by hand."""
