module petstore

go 1.22.0
